import pathlib

import pytest

from gpubench.devices import current_platform
from gpubench.devices.host import HostPlatform

HERE = pathlib.Path(__file__).parent


def pytest_collection_modifyitems(items):
    platform = current_platform()
    for item in items:
        if HERE not in item.path.parents:
            continue
        item.add_marker(pytest.mark.filterwarnings("default"))  # frameworks warn of one another
        wanted = item.get_closest_marker("gpus")
        if isinstance(platform, HostPlatform):
            item.add_marker(pytest.mark.skip(reason=f"needs a GPU: {platform.reason}"))
        elif wanted and platform.device_count() < wanted.args[0]:
            item.add_marker(pytest.mark.skip(reason=f"needs {wanted.args[0]} GPUs"))
