"""The Python child of a shard that runs --engine transformers: computes steps with transformers.

  python3 PROGRAM SOCKET THREADS

SOCKET is a descriptor. Each request gets one reply, after any number of frames with progress, except
`release`, which gets none. shard/backend/transformers/python_child.h has the calls.
"""

import os
import sys
import threading

import packages
from frames import Connection


def main() -> int:
    connection = Connection(int(sys.argv[1]))
    lacking = packages.missing()
    if lacking:
        connection.write({"error": lacking, "kind": "unavailable"})
        return 1
    # No request ever leaves the machine, and no bar of progress fills the log.
    os.environ.update({"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TOKENIZERS_PARALLELISM": "false",
                       "CUDA_VISIBLE_DEVICES": ""})
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    import torch
    torch.set_num_threads(int(sys.argv[2]))
    with torch.inference_mode():
        return Engine(connection).serve()


class Engine:
    def __init__(self, connection: Connection):
        self.connection = connection
        self.folder = self.rows = None

    def serve(self) -> int:
        from model import Refused, one_line
        while (request := self.connection.read()) is not None:
            header, body = request
            try:
                reply = getattr(self, "on_" + header["call"])(header, body)
            except Refused as error:
                reply = ({"error": str(error), "kind": "invalid"},)
            except MemoryError:
                reply = ({"error": "no memory is left for this call of the model", "kind": "memory"},)
            except Exception as error:
                import traceback
                traceback.print_exc()
                reply = ({"error": f"the model failed: {one_line(error)}", "kind": "internal"},)
            if reply is not None:
                self.connection.write(*reply)
        return 0

    def on_describe(self, header, _):
        from model import Folder
        self.folder = Folder(header["folder"], header["dtype"], header["trust_remote_code"])
        return (self.folder.describe(),)

    def on_load(self, _, __):
        from check import Ways, check
        from model import Model, Refused, one_line
        from rows import Rows
        with Progress(self.connection, "weights"):
            model = Model(self.folder)
        with Progress(self.connection, "self check"):
            try:
                ways = check(model)
            except Exception as error:
                raise Refused(f"a short text cannot be computed: {one_line(error)}") from error
        self.rows = Rows(model, ways)
        return ({"weight_bytes": model.bytes(), "ways": ways.name(), "notes": ways.notes},)

    def on_reset(self, header, _):
        self.rows.reset(header["timing"])
        return ({},)

    def on_release(self, header, _):
        self.rows.release(header["slots"])

    def on_execute(self, header, body):
        from rows import Segment
        numbers = memoryview(body).cast("i").tolist()
        tokens, rest = numbers[:header["tokens"]], numbers[header["tokens"]:]
        shapes, wanted = rest[:3 * header["segments"]], rest[3 * header["segments"]:]
        segments, first, at = [], 0, 0
        for i in range(header["segments"]):
            slot, count, context = shapes[3 * i:3 * i + 3]
            segment = Segment(slot, tokens[first:first + count], context, [], at)
            while at < len(wanted) and wanted[at] < first + count:
                segment.wanted.append(wanted[at] - first)
                at += 1
            segments.append(segment)
            first += count
        self.rows.execute(segments, len(wanted))
        return ({},)

    def on_logits(self, header, _):
        import torch
        rows = torch.stack(self.rows.logits[header["first"]:header["first"] + header["count"]])
        return {"width": rows.shape[-1]}, rows.numpy().data


class Progress:
    """Says every second how much memory the process has, while something long runs."""

    def __init__(self, connection: Connection, stage: str):
        self.connection, self.stage = connection, stage
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._say)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()

    def _say(self):
        from model import resident_bytes
        while True:
            self.connection.write({"progress": self.stage, "bytes": resident_bytes()})
            if self.done.wait(1):
                return


if __name__ == "__main__":
    sys.exit(main())
