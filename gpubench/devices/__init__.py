"""What a device can do, and which devices there are."""

from gpubench.devices import simulated
from gpubench.devices.base import Platform
from gpubench.devices.cuda import find_cuda
from gpubench.devices.host import HostPlatform
from gpubench.errors import UnsupportedError

__all__ = ["current_platform"]


def current_platform() -> Platform:
    """Return the devices to measure on: a simulated GPU in use, else CUDA's, else none."""
    active = simulated.active()
    if active is not None:
        return active
    try:
        return find_cuda()
    except UnsupportedError as error:
        return HostPlatform(str(error))
