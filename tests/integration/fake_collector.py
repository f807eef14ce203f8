"""An OpenTelemetry collector on a free port. It keeps the spans, decoded by OTLP's own definitions."""

import concurrent.futures
import threading
import time

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    def __init__(self):
        self._changed = threading.Condition()
        self._spans = []
        self._calls = 0
        self.resources = []
        self._open = threading.Event()
        self._open.set()
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self._server)
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()
        self.endpoint = f"http://127.0.0.1:{self.port}"

    def Export(self, request, context):
        with self._changed:
            self._calls += 1
            self._changed.notify_all()
        self._open.wait(60)
        with self._changed:
            for group in request.resource_spans:
                self.resources.append({a.key: value_of(a.value) for a in group.resource.attributes})
                for scope in group.scope_spans:
                    self._spans.extend(scope.spans)
            self._changed.notify_all()
        return trace_service_pb2.ExportTraceServiceResponse()

    def hold(self):
        """Lets no call end until release()."""
        self._open.clear()

    def release(self):
        self._open.set()

    def wait_call(self, seconds=20):
        with self._changed:
            assert self._changed.wait_for(lambda: self._calls > 0, seconds), "no call came"

    def spans_of(self, trace_id, count, seconds=20):
        """{name: [spans]} of a trace (hexadecimal id) once it has `count` spans."""
        def mine():
            return [span for span in self._spans if span.trace_id.hex() == trace_id]

        deadline = time.monotonic() + seconds
        with self._changed:
            self._changed.wait_for(lambda: len(mine()) >= count, max(0.0, deadline - time.monotonic()))
            found = mine()
        assert len(found) == count, [span.name for span in found]
        names = {}
        for span in found:
            names.setdefault(span.name, []).append(span)
        return names

    def spans(self):
        with self._changed:
            return list(self._spans)

    def stop(self):
        self.release()
        self._server.stop(0).wait()


def value_of(value):
    return getattr(value, value.WhichOneof("value"))


def attributes(span):
    return {attribute.key: value_of(attribute.value) for attribute in span.attributes}
