"""An MPI communicator whose ranks are threads of this process."""

import copy
import threading

HANGS_AFTER = 20.0  # seconds


class _World:
    def __init__(self, size):
        self.size = size
        self.barrier = threading.Barrier(size)
        self.slots = [None] * size


class FakeComm:
    """One rank's view of a world; `log` holds the names of the operations it took part in."""

    def __init__(self, world, rank, parent=None):
        self._world = world
        self._rank = rank
        self._parent = parent
        self.duplicates = []
        self.is_free = False
        self.log = []

    def Get_rank(self):  # noqa: N802
        return self._rank

    def Get_size(self):  # noqa: N802
        return self._world.size

    def Dup(self):  # noqa: N802
        worlds = self._exchange("Dup", _World(self._world.size))
        self.duplicates.append(FakeComm(worlds[0], self._rank, self))
        return self.duplicates[-1]

    def Free(self):  # noqa: N802
        self.is_free = True

    def Barrier(self):  # noqa: N802
        self._exchange("Barrier", None)

    def Allgather(self, sendbuf, recvbuf):  # noqa: N802
        recvbuf[:] = [each[0] for each in self._exchange("Allgather", sendbuf)]

    def allgather(self, sendobj):
        return copy.deepcopy(self._exchange("allgather", sendobj))

    def _exchange(self, operation, value):
        world = self._world
        self.log.append(operation)
        world.slots[self._rank] = (operation, value)
        world.barrier.wait(HANGS_AFTER)
        heard = list(world.slots)
        world.barrier.wait(HANGS_AFTER)
        operations = {operation for operation, _ in heard}
        assert len(operations) == 1, f"ranks met in different operations: {operations}"
        return [value for _, value in heard]


def run_ranks(size, program, first_rank_in=None):
    """Call ``program(comm)`` on each rank and return what each returned or raised.

    All ranks are threads of their own, but for the first if the calling thread is to be that.
    """
    world = _World(size)
    outcomes = [None] * size

    def run(rank):
        try:
            outcomes[rank] = program(FakeComm(world, rank))
        except BaseException as error:  # noqa: BLE001
            outcomes[rank] = error

    own = range(size) if first_rank_in is None else range(1, size)
    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in own]
    for thread in threads:
        thread.start()
    if first_rank_in is threading.current_thread():
        run(0)
    for thread in threads:
        thread.join(2 * HANGS_AFTER)
    return outcomes
