"""``pooled``: the window, or with a verb or without a screen the terminal."""

from __future__ import annotations

import os
import sys
import tempfile

from app.cli.options import HostOptions, JoinOptions, Options, ShowWindow, read_arguments
from app.core.log import set_up_logging

LEFT = 0
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")


def main() -> int:
    """Returns the exit code: 0 done, 1 failed, 2 not understood."""
    wish = read_arguments(sys.argv[1:])
    if not isinstance(wish, ShowWindow):
        return _terminal(wish)
    if has_display():
        return _window(wish.link)
    return _terminal(JoinOptions(wish.link) if wish.link else HostOptions())


def has_display() -> bool:
    """Whether a window can be shown. Only Linux can be without a screen."""
    return not sys.platform.startswith("linux") or any(os.environ.get(name) for name in DISPLAYS)


# Each half is loaded only when it is used: the terminal works where Qt's libraries are missing.


def _window(link: str) -> int:
    from app.ui.application import run

    return run(link)


def _terminal(options: Options) -> int:
    # Graphics drivers complain on every terminal that has no session, as over ssh.
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    try:
        from app.cli.run import run_verb
    except KeyboardInterrupt:
        return LEFT  # loading takes a second or two, and there is nothing to leave yet

    # Only now, because the GPU library insists on being the first to make its logger.
    set_up_logging()
    return run_verb(options)


if __name__ == "__main__":
    raise SystemExit(main())
