# SPDX-License-Identifier: MIT OR Apache-2.0
"""Arrays in device memory whose type has DLPack's table of functions, as PyTorch's tensors have it."""

import ctypes

import numpy

CUDA = 2
TYPE_CODES = {"i": 0, "u": 1, "f": 2}


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    pass


Delete = ctypes.PYFUNCTYPE(None, ctypes.POINTER(Managed))
Managed._fields_ = [
    ("version", ctypes.c_uint32 * 2),
    ("context", ctypes.c_void_p),
    ("deleter", Delete),
    ("flags", ctypes.c_uint64),
    ("tensor", Tensor),
]
Allocate = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(Tensor), ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p,
    ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p))
ToObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Managed), ctypes.POINTER(ctypes.c_void_p))
View = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Tensor))
Stream = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Table(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("previous", ctypes.c_void_p),
        ("allocate", Allocate),
        ("from_object", ctypes.c_void_p),
        ("to_object", ToObject),
        ("view", View),
        ("stream", Stream),
    ]


class Library:
    """A library for the GPU 0 of `driver`. `Array` is its type, `current_stream` the stream in whose order it allocates."""

    def __init__(self, driver):
        self.driver, self.current_stream = driver, None
        # The bytes of each allocation that is in use, by its address.
        self.in_use, self._exported = {}, {}
        self._table = Table((1, 3), None, Allocate(self._allocate), None, ToObject(self._object), View(self._view),
                            Stream(self._stream))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self._name = b"dlpack_exchange_api"
        table = new(ctypes.addressof(self._table), self._name, None)
        self.Array = type("Array", (), {"__dlpack_c_exchange_api__": table, "__del__": lambda array: array.free()})

    def array(self, values):
        """A copy of `values` in device memory."""
        values = numpy.ascontiguousarray(values)
        address = self._new(values.nbytes)
        if values.nbytes:
            source = ctypes.c_void_p(values.ctypes.data)
            self.driver("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(address), source, ctypes.c_size_t(values.nbytes),
                        ctypes.c_void_p(1))
            self.driver.synchronize(1)
        strides = [stride // values.itemsize for stride in values.strides]
        return self._made(address, values.shape, strides, values.dtype, lambda: self._free(address))

    def read(self, array):
        """A copy in host memory, once the work of the current stream is done."""
        self.driver.synchronize(self.current_stream)
        if 0 in array.shape:
            return numpy.empty(array.shape, array.dtype)
        strides = [stride * array.dtype.itemsize for stride in array.strides]
        span = sum((side - 1) * stride for side, stride in zip(array.shape, strides)) + array.dtype.itemsize
        memory = numpy.empty(span, numpy.uint8)
        to, source = ctypes.c_void_p(memory.ctypes.data), ctypes.c_uint64(array.address)
        self.driver("cuMemcpyDtoHAsync_v2", to, source, ctypes.c_size_t(span), ctypes.c_void_p(1))
        self.driver.synchronize(1)
        return numpy.ndarray(array.shape, array.dtype, memory.data, 0, strides).copy()

    def _new(self, size):
        address = ctypes.c_uint64()
        self.driver("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        self.in_use[address.value] = size
        return address.value

    def _free(self, address):
        self.driver("cuMemFree_v2", ctypes.c_uint64(address))
        del self.in_use[address]

    def _made(self, address, shape, strides, dtype, free):
        array = self.Array()
        array.address, array.shape, array.dtype, array.free = address, tuple(shape), numpy.dtype(dtype), free
        array.sides = (ctypes.c_int64 * len(shape))(*shape)
        array.strides = (ctypes.c_int64 * len(shape))(*strides)
        return array

    def _allocate(self, prototype, to, _context, _set_error):
        wanted = prototype[0]
        address = self._new(wanted.bits // 8 * int(numpy.prod(wanted.shape[:wanted.ndim])))
        managed = Managed((1, 3), None, Delete(lambda managed: self._delete(managed, address)), 0, wanted)
        managed.tensor.data = address
        self._exported[ctypes.addressof(managed)] = managed
        to[0] = ctypes.addressof(managed)
        return 0

    def _delete(self, managed, address):
        self._free(address)
        del self._exported[ctypes.addressof(managed[0])]

    def _object(self, managed, to):
        tensor, deleter = managed[0].tensor, managed[0].deleter
        kind = {code: kind for kind, code in TYPE_CODES.items()}[tensor.code]
        shape, strides = tensor.shape[:tensor.ndim], tensor.strides[:tensor.ndim]
        address, dtype = (tensor.data or 0) + tensor.byte_offset, f"{kind}{tensor.bits // 8}"
        array = self._made(address, shape, strides, dtype, lambda: deleter(managed))
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(array))
        to[0] = id(array)
        return 0

    def _view(self, array, to):
        array = ctypes.cast(array, ctypes.py_object).value
        to[0] = Tensor(array.address, (CUDA, 0), len(array.shape), TYPE_CODES[array.dtype.kind],
                       8 * array.dtype.itemsize, 1, array.sides, array.strides, 0)
        return 0

    def _stream(self, _kind, _ordinal, to):
        to[0] = self.current_stream
        return 0
