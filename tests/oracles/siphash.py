"""SipHash-2-4 with 128 bits, from the paper and its authors' form of 128 bits, on whole numbers of Python."""

from __future__ import annotations

_MASK = 2**64 - 1


def _turn(x: int, n: int) -> int:
    return (x << n | x >> (64 - n)) & _MASK


def _rounds(v: list[int], n: int) -> None:
    for _ in range(n):
        v[0] = (v[0] + v[1]) & _MASK
        v[1] = _turn(v[1], 13) ^ v[0]
        v[0] = _turn(v[0], 32)
        v[2] = (v[2] + v[3]) & _MASK
        v[3] = _turn(v[3], 16) ^ v[2]
        v[0] = (v[0] + v[3]) & _MASK
        v[3] = _turn(v[3], 21) ^ v[0]
        v[2] = (v[2] + v[1]) & _MASK
        v[1] = _turn(v[1], 17) ^ v[2]
        v[2] = _turn(v[2], 32)


def siphash_128(message: bytes, key: bytes) -> bytes:
    first, second = key[:8], key[8:]
    v = [
        int.from_bytes(part, "little") ^ int.from_bytes(name, "big")
        for part, name in zip(
            (first, second) * 2, (b"somepseu", b"dorandom", b"lygenera", b"tedbytes"), strict=True
        )
    ]
    v[1] ^= 0xEE
    end = len(message) // 8 * 8
    last = message[end:].ljust(7, b"\0") + bytes([len(message) % 256])
    for begin in range(0, end + 1, 8):
        word = int.from_bytes(message[begin : begin + 8] if begin < end else last, "little")
        v[3] ^= word
        _rounds(v, 2)
        v[0] ^= word
    v[2] ^= 0xEE
    _rounds(v, 4)
    digest = (v[0] ^ v[1] ^ v[2] ^ v[3]).to_bytes(8, "little")
    v[1] ^= 0xDD
    _rounds(v, 4)
    return digest + (v[0] ^ v[1] ^ v[2] ^ v[3]).to_bytes(8, "little")
