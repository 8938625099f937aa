"""A real HTTP/2 server over TLS on loopback, which can end streams and connections in every way the protocol has."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

_SHARE = 16 * 1024


def make_certificate(folder: Path, *names: str) -> Path:
    """key.pem and cert.pem, valid for these names, signed by itself. Needs the openssl command."""
    alternatives = ",".join(f"DNS:{name}" for name in names)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-keyout", "key.pem", "-out", "cert.pem", "-subj", f"/CN={names[0]}",
         "-addext", f"subjectAltName={alternatives}"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder


@dataclass
class Asked:
    """One request as it arrived."""

    at: float
    path: str
    host: str
    connection: int
    stream: int


class Stream:
    """What an answer may do. Each runs in a thread of its own."""

    def __init__(self, wire: _Wire, asked: Asked) -> None:
        self._wire = wire
        self.asked = asked

    def head(self, status: int = 200, *headers: tuple[str, str], end: bool = False) -> None:
        self._wire.do(lambda c: c.send_headers(self.asked.stream, [(":status", str(status)), *headers], end_stream=end))

    def body(self, parts: Iterable[bytes], *, end: bool = True) -> None:
        for part in parts:
            for at in range(0, len(part), _SHARE):
                self._wire.send(self.asked.stream, part[at : at + _SHARE])
        if end:
            self._wire.do(lambda c: c.end_stream(self.asked.stream))

    def reset(self, code: int) -> None:
        self._wire.do(lambda c: c.reset_stream(self.asked.stream, code))

    def go_away(self, code: int, last: int) -> None:
        self._wire.do(lambda c: c.close_connection(code, last_stream_id=last))

    def hang_up(self) -> None:
        self._wire.close()


class _Wire:
    """One connection: h2's state machine, guarded by a lock, and the socket under it."""

    def __init__(self, sock: ssl.SSLSocket, streams: int) -> None:
        self._socket = sock
        self._turn = threading.Condition()
        self._machine = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        self.closed = False
        self.do(lambda machine: machine.initiate_connection())
        self.do(lambda machine: machine.update_settings({h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: streams}))

    def do(self, action: Callable[[h2.connection.H2Connection], None]) -> None:
        with self._turn:
            action(self._machine)
            self._flush()

    def send(self, stream: int, data: bytes) -> None:
        """Waits for the client's window: flow control as in life."""
        with self._turn:
            while data and not self.closed:
                room = min(self._machine.local_flow_control_window(stream), self._machine.max_outbound_frame_size)
                if room <= 0:
                    self._turn.wait(1.0)
                    continue
                self._machine.send_data(stream, data[:room])
                data = data[room:]
                self._flush()
            if data:
                raise OSError("the client has gone")

    def events(self) -> list[h2.events.Event]:
        data = self._socket.recv(65536)
        if not data:
            raise OSError("the client has gone")
        with self._turn:
            events = self._machine.receive_data(data)
            self._flush()
            self._turn.notify_all()
        return events

    def close(self) -> None:
        with self._turn:
            self.closed = True
            self._turn.notify_all()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _flush(self) -> None:
        data = self._machine.data_to_send()
        if data:
            self._socket.sendall(data)


@dataclass
class H2Server:
    """`answer` gets every stream. `busiest`: by connection, most streams that were open at once."""

    certificate: Path
    answer: Callable[[Stream], None]
    streams: int = 100
    log: list[Asked] = field(default_factory=list)
    resets: list[int] = field(default_factory=list)  # error codes that the client sent
    connections: int = 0
    busiest: dict[int, int] = field(default_factory=dict)
    protocols: list[str | None] = field(default_factory=list)

    def __enter__(self) -> H2Server:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(self.certificate / "cert.pem", self.certificate / "key.pem")
        self._context.set_alpn_protocols(["h2"])
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listening.getsockname()[1]
        self._wires: list[_Wire] = []
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for wire in self._wires:
            wire.close()

    def url(self, path: str, host: str = "h2.test") -> str:
        return f"https://{host}:{self.port}{path}"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection, self.connections), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        try:
            sock = self._context.wrap_socket(connection, server_side=True)
        except OSError:
            return
        self.protocols.append(sock.selected_alpn_protocol())
        if self.protocols[-1] != "h2":
            sock.close()
            return
        active: set[int] = set()
        try:
            wire = _Wire(sock, self.streams)
        except OSError:
            return
        self._wires.append(wire)
        try:
            while True:
                for event in wire.events():
                    self._met(event, wire, number, active)
        except (OSError, h2.exceptions.ProtocolError):
            wire.close()

    def _met(self, event: h2.events.Event, wire: _Wire, number: int, active: set[int]) -> None:
        if isinstance(event, h2.events.StreamReset):
            self.resets.append(int(event.error_code))
        if not isinstance(event, h2.events.RequestReceived):
            return
        fields = {bytes(k).decode() if isinstance(k, bytes) else k: bytes(v).decode() if isinstance(v, bytes) else v
                  for k, v in event.headers}  # fmt: skip
        asked = Asked(time.monotonic(), fields[":path"], fields[":authority"], number, event.stream_id)
        self.log.append(asked)
        active.add(event.stream_id)
        self.busiest[number] = max(self.busiest.get(number, 0), len(active))
        threading.Thread(target=self._answer, args=(Stream(wire, asked), active), daemon=True).start()

    def _answer(self, stream: Stream, active: set[int]) -> None:
        try:
            self.answer(stream)
        except (OSError, h2.exceptions.ProtocolError):
            pass  # the client has ended the stream, as it should
        finally:
            active.discard(stream.asked.stream)
