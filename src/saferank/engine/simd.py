"""Sixteen numbers at once inside compiled loops: a vector type for Numba, with load, store and arithmetic.

Numba cannot know that two arrays do not overlap, so it does not keep short inner loops in vector registers. These
values do: each is one LLVM vector of `LANES` float32 or float64. Only for use inside `jit` functions.
"""

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, models, overload, register_model

LANES = 16

# Numba's decorators replace a function by an object that only compiled code can call: untyped on purpose.
_intrinsic: Callable[[Callable[..., Any]], Any] = intrinsic
_overload: Callable[..., Callable[[Callable[..., Any]], Any]] = overload


class Vector(types.Type):
    """`LANES` numbers of one floating-point type."""

    def __init__(self, dtype: types.Float) -> None:
        self.dtype = dtype
        super().__init__(name=f"Vector{LANES}({dtype})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: Vector) -> None:
        element = ir.FloatType() if vector.dtype is types.float32 else ir.DoubleType()
        super().__init__(manager, vector, ir.VectorType(element, LANES))  # type: ignore[no-untyped-call]


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any, vector_type: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), vector_type.as_pointer())


@_intrinsic
def load(typing: Any, array: Any, start: Any) -> Any:
    """Return array[start : start + LANES] of a flat contiguous array."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        vector_type = context.get_value_type(signature.return_type)
        address = _address(context, builder, signature.args[0], values[0], values[1], vector_type)
        loaded = builder.load(address)
        loaded.align = array.dtype.bitwidth // 8
        return loaded

    return Vector(array.dtype)(array, types.intp), generate


@_intrinsic
def store(typing: Any, array: Any, start: Any, vector: Any) -> Any:
    """Write the vector to array[start : start + LANES]."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address = _address(context, builder, signature.args[0], values[0], values[1], values[2].type)
        builder.store(values[2], address).align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.intp, vector), generate


@_intrinsic
def spread(typing: Any, number: Any) -> Any:
    """Return the vector with the same number in every lane."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        vector_type = context.get_value_type(signature.return_type)
        undefined = ir.Constant(vector_type, ir.Undefined)
        first = builder.insert_element(undefined, values[0], ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
        return builder.shuffle_vector(first, undefined, zeros)

    return Vector(number)(number), generate


@_intrinsic
def total(typing: Any, vector: Any) -> Any:
    """Return the sum over the lanes."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        (value,) = values
        width = LANES
        while width > 1:  # halve: add the upper half to the lower one
            width //= 2
            undefined = ir.Constant(value.type, ir.Undefined)
            halves = [
                builder.shuffle_vector(
                    value,
                    undefined,
                    ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(first, first + width))),
                )
                for first in (0, width)
            ]
            value = builder.fadd(*halves)
        return builder.extract_element(value, ir.Constant(ir.IntType(32), 0))

    return vector.dtype(vector), generate


@_intrinsic
def rounded(typing: Any, vector: Any) -> Any:
    """Return each (non-negative) lane rounded to the nearest whole number."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        whole = _nearest_integer(builder, values[0])
        return builder.sitofp(whole, values[0].type)

    return vector(vector), generate


@_intrinsic
def power_of_half(typing: Any, vector: Any) -> Any:
    """Return 2^-k for each lane k, rounded to the nearest whole number; k from 0 to 126."""
    bits, bias, mantissa = (32, 127, 23) if vector.dtype is types.float32 else (64, 1023, 52)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        whole = _nearest_integer(builder, values[0])
        integers = ir.VectorType(ir.IntType(bits), LANES)
        if bits == 64:
            whole = builder.sext(whole, integers)
        exponent = builder.sub(ir.Constant(integers, [bias] * LANES), whole)
        return builder.bitcast(builder.shl(exponent, ir.Constant(integers, [mantissa] * LANES)), values[0].type)

    return vector(vector), generate


def _nearest_integer(builder: Any, value: Any) -> Any:
    half = ir.Constant(value.type, [0.5] * LANES)
    return builder.fptosi(builder.fadd(value, half), ir.VectorType(ir.IntType(32), LANES))


@_intrinsic
def smaller(typing: Any, left: Any, right: Any) -> Any:
    """Return the smaller of the two, lane by lane."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", *values), *values)

    return left(left, right), generate


def _arithmetic(instruction: str) -> Any:
    @_intrinsic
    def apply(typing: Any, left: Any, right: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return getattr(builder, instruction)(*values, flags=("contract", "nsz"))

        return left(left, right), generate

    return apply


_add, _subtract, _multiply = _arithmetic("fadd"), _arithmetic("fsub"), _arithmetic("fmul")


@_overload(operator.iadd, strict=False)
@_overload(operator.add, strict=False)
def _overload_add(left: Any, right: Any) -> Any:
    if isinstance(left, Vector) and left == right:
        return lambda left, right: _add(left, right)
    return None


@_overload(operator.sub, strict=False)
def _overload_subtract(left: Any, right: Any) -> Any:
    if isinstance(left, Vector) and left == right:
        return lambda left, right: _subtract(left, right)
    return None


@_overload(operator.mul, strict=False)
def _overload_multiply(left: Any, right: Any) -> Any:
    if isinstance(left, Vector) and left == right:
        return lambda left, right: _multiply(left, right)
    return None
