"""``pooled``: the window, or with a verb or without a screen the terminal."""

from __future__ import annotations

import os
import sys
import tempfile

from app.cli.arguments import OVERVIEW, read_arguments
from app.cli.options import JoinOptions, Options, ShowWindow

LEFT = 0
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")


def main() -> int:
    """Returns the exit code: 0 done, 1 failed, 2 not understood."""
    try:
        return _obey(read_arguments(sys.argv[1:]))
    except KeyboardInterrupt:
        return LEFT  # loading takes a second or two, and there is nothing to leave yet


def _obey(wish: Options | ShowWindow) -> int:
    if not isinstance(wish, ShowWindow):
        return _terminal(wish)
    if has_display():
        return _window(wish.link)
    return _terminal(JoinOptions(where=wish.link)) if wish.link else _menu()


def has_display() -> bool:
    """Whether a window can be shown. Only Linux can be without a screen."""
    return not sys.platform.startswith("linux") or any(os.environ.get(name) for name in DISPLAYS)


# Each part is loaded only when it is used: the terminal works where Qt's libraries are missing.


def _window(link: str) -> int:
    from app.ui.application import run

    return run(link)


def _menu() -> int:
    """Where nobody can be asked, what there is to say is said."""
    from app.cli.console import make_console
    from app.cli.menu import ask, is_asked

    console = make_console()
    if not is_asked(console):
        sys.stdout.write(OVERVIEW)
        return LEFT
    wish = ask(console)
    return _terminal(wish) if wish is not None else LEFT


def _terminal(options: Options) -> int:
    # Graphics drivers complain on every terminal that has no session, as over ssh.
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    from app.cli.run import run_verb
    from app.core.log import set_up_logging

    # Only now, because the GPU library insists on being the first to make its logger.
    set_up_logging()
    return run_verb(options)


if __name__ == "__main__":
    raise SystemExit(main())
