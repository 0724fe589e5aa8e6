"""A pynvml that knows one device, at PCI address 1:2:3."""

from types import ModuleType, SimpleNamespace


class NVMLError(Exception):
    pass


class NVMLNotFoundError(NVMLError):
    def __str__(self):
        return "Not Found"


class FakeNvml(ModuleType):
    """The module; functions named in `missing` fail, other attributes are as they are given."""

    NVMLError = NVMLError
    NVML_CLOCK_SM = 0
    NVML_CLOCK_MEM = 1
    NVML_TEMPERATURE_GPU = 0
    NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1

    def __init__(self, reasons=0, missing=(), **attributes):
        super().__init__("pynvml")
        self.reasons = reasons
        self.temperature = 41
        self.margin = 46
        self.power_mw = 71_160
        self.energy_mj = 5_000
        vars(self).update(
            nvmlInit=lambda: None,
            nvmlSystemGetDriverVersion=lambda: "570.1",
            nvmlDeviceGetHandleByPciBusId=self._by_address,
            nvmlDeviceGetCurrentClocksThrottleReasons=lambda handle: self.reasons,
            nvmlDeviceGetClockInfo=lambda handle, clock: {0: 1980, 1: 2619}[clock],
            nvmlDeviceGetTemperature=lambda handle, sensor: self.temperature,
            nvmlDeviceGetTemperatureThreshold=lambda handle, kind: {1: 90}[kind],
            nvmlDeviceGetMarginTemperature=lambda handle: self.margin,
            nvmlDeviceGetPowerUsage=lambda handle: self.power_mw,
            nvmlDeviceGetTotalEnergyConsumption=lambda handle: self.energy_mj,
            nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(used=3 * 2**30),
            nvmlClocksThrottleReasonNone=0x0,
            nvmlClocksThrottleReasonGpuIdle=0x1,
            nvmlClocksThrottleReasonApplicationsClocksSetting=0x2,
            nvmlClocksThrottleReasonUserDefinedClocks=0x2,
            nvmlClocksThrottleReasonSwPowerCap=0x4,
            nvmlClocksThrottleReasonHwThermalSlowdown=0x40,
            nvmlClocksThrottleReasonAll=0x47,
        )
        vars(self).update(dict.fromkeys(missing, self._fail), **attributes)

    def _by_address(self, address):
        if address != b"1:2:3":
            raise NVMLNotFoundError
        return "handle"

    def _fail(self, *args):
        raise NVMLNotFoundError
