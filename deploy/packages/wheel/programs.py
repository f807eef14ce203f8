"""Starts the programs of this package in place of the Python process."""

import os
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent


def _start(program, arguments, name=None):
    os.execv(FOLDER / "bin" / program, [name or program, *arguments])


def penstock():
    _start("penstock", sys.argv[1:])


def launcher():
    _start("penstock-launcher", sys.argv[1:])


def tgi_launcher():
    _start("penstock-launcher", sys.argv[1:], "text-generation-launcher")


def bench():
    _start("penstock-bench", sys.argv[1:])
