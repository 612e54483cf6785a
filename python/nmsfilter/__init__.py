from ._core import *
from ._core import nms, batched_nms, nms_rotated, batched_nms_rotated
from ._errors import InputError
