"""The public names, for type checkers; `__init__.py` imports them when they are asked for."""

from week01_uops.dtypes import (
    bfloat16 as bfloat16,
)
from week01_uops.dtypes import (
    bool_ as bool_,
)
from week01_uops.dtypes import (
    float16 as float16,
)
from week01_uops.dtypes import (
    float32 as float32,
)
from week01_uops.dtypes import (
    float64 as float64,
)
from week01_uops.dtypes import (
    int8 as int8,
)
from week01_uops.dtypes import (
    int16 as int16,
)
from week01_uops.dtypes import (
    int32 as int32,
)
from week01_uops.dtypes import (
    int64 as int64,
)
from week01_uops.dtypes import (
    uint8 as uint8,
)
from week01_uops.dtypes import (
    uint16 as uint16,
)
from week01_uops.dtypes import (
    uint32 as uint32,
)
from week01_uops.dtypes import (
    uint64 as uint64,
)
from week09_10_autodiff import nn as nn
from week09_10_autodiff import optim as optim
from week09_10_autodiff.context import (
    enable_grad as enable_grad,
)
from week09_10_autodiff.context import (
    is_grad_enabled as is_grad_enabled,
)
from week09_10_autodiff.context import (
    no_grad as no_grad,
)
from week09_10_autodiff.derivatives import grad as grad
from week09_10_autodiff.errors import TensorError as TensorError
from week09_10_autodiff.nans import check_nan as check_nan
from week09_10_autodiff.tensor import (
    Tensor as Tensor,
)
from week09_10_autodiff.tensor import (
    arange as arange,
)
from week09_10_autodiff.tensor import (
    cat as cat,
)
from week09_10_autodiff.tensor import (
    einsum as einsum,
)
from week09_10_autodiff.tensor import (
    eye as eye,
)
from week09_10_autodiff.tensor import (
    from_dlpack as from_dlpack,
)
from week09_10_autodiff.tensor import (
    from_numpy as from_numpy,
)
from week09_10_autodiff.tensor import (
    full as full,
)
from week09_10_autodiff.tensor import (
    linspace as linspace,
)
from week09_10_autodiff.tensor import (
    maximum as maximum,
)
from week09_10_autodiff.tensor import (
    minimum as minimum,
)
from week09_10_autodiff.tensor import (
    ones as ones,
)
from week09_10_autodiff.tensor import (
    stack as stack,
)
from week09_10_autodiff.tensor import (
    where as where,
)
from week09_10_autodiff.tensor import (
    zeros as zeros,
)
