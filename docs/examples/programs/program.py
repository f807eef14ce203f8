"""Runs the program of a file against a server: python FILE URL. Its result is printed as JSON."""

import json
import sys

from sglang import RuntimeEndpoint


def serve(main):
    print(json.dumps(main(RuntimeEndpoint(sys.argv[1]))))
