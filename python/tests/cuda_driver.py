# SPDX-License-Identifier: MIT OR Apache-2.0
"""Arrays in device memory, without a library for GPUs: by the CUDA driver, or by the one that emulates it."""

import ctypes

import numpy

LEGACY = 1


class Driver:
    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        context = ctypes.c_void_p()
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self("cuCtxPushCurrent_v2", context)

    def __call__(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name}: {status}")

    def stream(self):
        stream = ctypes.c_void_p()
        self("cuStreamCreate", ctypes.byref(stream), 1)
        return stream.value

    def synchronize(self, stream):
        self("cuStreamSynchronize", ctypes.c_void_p(stream))

    def read(self, array):
        """A copy in host memory of an array with __cuda_array_interface__, whose work is waited for."""
        interface = array.__cuda_array_interface__
        if interface.get("stream") is not None:
            self.synchronize(interface["stream"])
        dtype, shape = numpy.dtype(interface["typestr"]), interface["shape"]
        strides = interface["strides"] or numpy.empty(shape, dtype).strides
        if 0 in shape:
            return numpy.empty(shape, dtype)
        span = sum((side - 1) * stride for side, stride in zip(shape, strides)) + dtype.itemsize
        bytes_ = numpy.empty(span, numpy.uint8)
        to, source = ctypes.c_void_p(bytes_.ctypes.data), ctypes.c_uint64(interface["data"][0])
        stream = ctypes.c_void_p(LEGACY)
        self("cuMemcpyDtoHAsync_v2", to, source, ctypes.c_size_t(span), stream)
        self.synchronize(LEGACY)
        return numpy.ndarray(shape, dtype, bytes_.data, 0, strides).copy()


class DeviceArray:
    """A copy in device memory, with __cuda_array_interface__ alone."""

    def __init__(self, driver, array, stream=None):
        array = numpy.ascontiguousarray(array)
        self._driver, self._address = driver, ctypes.c_uint64()
        driver("cuMemAlloc_v2", ctypes.byref(self._address), ctypes.c_size_t(max(array.nbytes, 1)))
        if array.nbytes:
            source = ctypes.c_void_p(array.ctypes.data)
            driver("cuMemcpyHtoDAsync_v2", self._address, source, ctypes.c_size_t(array.nbytes), ctypes.c_void_p(LEGACY))
            driver.synchronize(LEGACY)
        self.__cuda_array_interface__ = {
            "version": 3,
            "typestr": array.dtype.str,
            "shape": array.shape,
            "strides": None,
            "data": (self._address.value, False),
            "stream": stream,
        }

    def __del__(self):
        self._driver("cuMemFree_v2", self._address)
