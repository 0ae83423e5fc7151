# make run: set up and open the window. make test: set up and run every check.
.DEFAULT_GOAL := run
.PHONY: run test lint demo shots bench clean

py := .venv/bin/python
# The tests run on the software Vulkan driver and without a screen.
quiet := QT_QPA_PLATFORM=offscreen QT_API=pyside6 XDG_RUNTIME_DIR=$${XDG_RUNTIME_DIR:-/tmp}

run:
	@scripts/setup.sh run
	@$(py) -m app $(ARGS)

test: lint
	@$(py) -m tests.starter
	@$(quiet) $(py) -m pytest -n 2 --dist worksteal $(ARGS)

lint:
	@scripts/setup.sh test
	@.venv/bin/ruff check app tests
	@.venv/bin/ruff format --check app tests
	@.venv/bin/basedpyright
	@.venv/bin/lint-imports

demo:
	@scripts/setup.sh test
	@$(quiet) $(py) -m tests.e2e.demo $(if $(MODEL),--model $(MODEL)) $(ARGS)

shots:
	@scripts/setup.sh test
	@$(quiet) $(py) -m app.ui.shots build/shots

bench:
	@scripts/setup.sh test
	@$(quiet) $(py) -m tests.bench $(ARGS)

clean:
	rm -rf .venv build
