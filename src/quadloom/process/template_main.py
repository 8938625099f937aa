"""The template's side: for each order import the module, fork a child, and report how the child ended.

There is never a second thread here: a fork copies only the thread that calls it, and the locks of all others as they
are.
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import socket
import sys
import traceback

from quadloom.model import wire
from quadloom.process.template import MOST_BYTES, STATUS_BYTES, ForkOrder

_IDLE_SECONDS = 60.0
_DESCRIPTORS = 3


class Template:
    """Children by the descriptor of their process, each with the socket on which its owner waits for its end."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: dict[int, tuple[int, socket.socket]] = {}
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)

    def serve(self) -> None:
        """Until the owner closes the socket, or has had no children for a while."""
        while ready := self._poll.poll(None if self._children else _IDLE_SECONDS * 1000):
            for descriptor, _ in ready:
                if descriptor != self._control.fileno():
                    self._reap(descriptor)
                elif not self._obey():
                    return

    def _obey(self) -> bool:
        """Whether there was an order."""
        message, descriptors, _, _ = socket.recv_fds(self._control, MOST_BYTES, _DESCRIPTORS)
        if not message:
            return False
        self._fork(wire.decode(message, ForkOrder), *descriptors)
        return True

    def _fork(self, order: ForkOrder, channel: int, status: int, stderr: int) -> None:
        _import(order.module)
        pid = os.fork()
        if pid == 0:
            os.close(status)
            self._close()
            _become(order, channel, stderr)
        os.close(channel)
        os.close(stderr)
        owner = socket.socket(fileno=status)
        handle = os.pidfd_open(pid)
        self._children[handle] = pid, owner
        self._poll.register(handle, select.POLLIN)
        _tell(owner, pid, handle)

    def _reap(self, handle: int) -> None:
        pid, owner = self._children.pop(handle)
        self._poll.unregister(handle)
        os.close(handle)
        _, status = os.waitpid(pid, 0)
        _tell(owner, os.waitstatus_to_exitcode(status))
        owner.close()

    def _close(self) -> None:
        """In a child: nothing of the template stays open, or the ends of owners and siblings would go unnoticed."""
        self._control.close()
        for handle, (_, owner) in self._children.items():
            os.close(handle)
            owner.close()


def _import(module: str) -> None:
    """In the template, so that the next child of this kind need not do it."""
    if module not in sys.modules:
        importlib.import_module(module)
        gc.freeze()  # the children's collectors would touch these objects, and so copy the pages that all share


def _tell(owner: socket.socket, number: int, *handles: int) -> None:
    try:
        socket.send_fds(owner, [number.to_bytes(STATUS_BYTES, "little", signed=True)], handles)
    except OSError:
        return  # the owner does not wait for this child any more


def _become(order: ForkOrder, channel: int, stderr: int) -> None:
    """The rest of the child's life. Never returns."""
    code = 1
    try:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.chdir(order.folder)
        os.environ.clear()
        os.environ.update(order.environment)
        gc.enable()
        sys.argv = [order.module, str(channel), str(order.address_space), repr(order.clock_origin)]
        sys.modules[order.module].main()
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001  as the interpreter does at the end of a program
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def serve(control: int) -> None:
    """Be the template at the other end of this socket. Never returns."""
    gc.disable()  # imports leave no garbage worth looking for
    Template(socket.socket(fileno=control)).serve()
    os._exit(0)  # nothing to save, and taking hundreds of modules apart is work


if __name__ == "__main__":
    serve(int(sys.argv[1]))
