# SPDX-License-Identifier: GPL-2.0-only
"""Bytes of an element, by the names that frameworks have for its type."""

SIZES = {
    "double": 8, "float64": 8, "f64": 8, "long": 8, "int64": 8, "s64": 8, "u64": 8, "i64": 8, "ui64": 8, "uint64": 8,
    "longint": 8, "c64": 8, "complexfloat": 8, "c10::complex<float>": 8, "complex64": 8, "si64": 8,
    "float": 4, "float32": 4, "f32": 4, "tf32": 4, "int": 4, "int32": 4, "s32": 4, "u32": 4, "i32": 4, "ui32": 4,
    "uint32": 4, "si32": 4, "complexhalf": 4,
    "half": 2, "float16": 2, "f16": 2, "bfloat16": 2, "c10::bfloat16": 2, "c10::half": 2, "bf16": 2, "short": 2,
    "int16": 2, "s16": 2, "u16": 2, "i16": 2, "ui16": 2, "uint16": 2, "shortint": 2, "si16": 2,
    "byte": 1, "char": 1, "unsignedchar": 1, "signedchar": 1, "bool": 1, "pred": 1, "int8": 1, "uint8": 1, "s8": 1,
    "u8": 1, "i8": 1, "ui8": 1, "si8": 1, "i1": 1, "qint8": 1, "quint8": 1, "f8e4m3": 1, "f8e5m2": 1, "f8e4m3fn": 1,
    "f8e4m3b11fnuz": 1, "f8e5m2fnuz": 1, "f8e4m3fnuz": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1, "f8e3m4": 1, "f8e8m0fnu": 1, "float8_e8m0fnu": 1,
    "float4_e2m1fn_x2": 1, "bits8": 1, "bits1x8": 1, "bits2x4": 1, "bits4x2": 1, "quint4x2": 1, "quint2x4": 1, "bits16": 2,
    "qint32": 4, "c128": 16, "complexdouble": 16, "c10::complex<double>": 16,
}


def element_size(name):
    """None for a type that is not known."""
    return SIZES.get(str(name).lower().replace(" ", ""))
