"""A child for tests: does what each message says. Run by `quadloom.process.channel.start`."""

from __future__ import annotations

import os
import signal
import time

from quadloom.process import limits
from quadloom.process.channel import Channel, run


def serve(channel: Channel) -> None:
    channel.send(channel.receive(str))
    while True:
        word, size = channel.receive(tuple[str, int])
        if word == "echo":
            channel.send(b"x" * size)
        elif word == "pid":
            channel.send(os.getpid())
        elif word == "sleep":
            time.sleep(size)
        elif word == "alarm":
            limits.limit_time(size)
            time.sleep(60)
        elif word == "spin":
            limits.limit_time(size)
            signal.setitimer(signal.ITIMER_REAL, 0)  # the CPU limit alone
            while True:
                pass
        elif word == "allocate":
            held = bytearray(size)
            channel.send(len(held))
        elif word == "torn":
            os.write(channel.fileno(), (1000).to_bytes(4, "little") + b"half a frame")
            os._exit(3)
        elif word == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif word == "environment":
            channel.send(os.environ.get("SAMPLE", ""))
        elif word == "folder":
            channel.send(os.getcwd())
        elif word == "open":
            names = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
            channel.send(sorted(os.readlink(name).partition(":")[0] for name in names if os.path.lexists(name)))


def main() -> None:
    run(serve)


if __name__ == "__main__":
    main()
