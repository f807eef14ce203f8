"""Starts the programs of this package in place of the Python process."""

import os
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent


def _start(program, arguments, name=None):
    os.execv(FOLDER / "bin" / program, [name or program, *arguments])


def penstock():
    arguments = sys.argv[1:]
    if (FOLDER / "bin" / "penstock").exists():
        _start("penstock", arguments)
    # Without the command: serve MODEL [OPTION...] starts the launcher, and so do the launcher's options.
    if arguments[:1] == ["serve"]:
        del arguments[0]
    if arguments and not arguments[0].startswith("-"):
        arguments.insert(0, "--model-id")
    _start("penstock-launcher", arguments)


def launcher():
    _start("penstock-launcher", sys.argv[1:])


def tgi_launcher():
    _start("penstock-launcher", sys.argv[1:], "text-generation-launcher")


def bench():
    _start("penstock-bench", sys.argv[1:])
