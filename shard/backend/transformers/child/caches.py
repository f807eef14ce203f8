"""Caches of single sequences, joined to one padded cache of a batch and split again.

In a joined cache the positions of every row end at the last column: shorter rows have zeros before
them, which the attention mask hides.
"""

import copy

import torch
from transformers import cache_utils

# Layers whose tensors are all known here. A cache with another layer stays as it is, and its rows are
# computed one at a time.
_LAYERS = {
    getattr(cache_utils, name, None)
    for name in ("DynamicLayer", "DynamicSlidingWindowLayer", "DynamicIndexedLayer", "LinearAttentionLayer",
                 "LinearAttentionAndFullAttentionLayer", "LinearAttentionAndSlidingWindowAttentionLayer",
                 "DummyLayer")
} - {None}
# Tensors with one entry for each position, and the dimension of the position.
_OF_POSITIONS = {"keys": -2, "values": -2, "indexer_keys": 1}
# Dictionaries of tensors without positions.
_STATES = ("conv_states", "recurrent_states")


def can_join(cache) -> bool:
    return type(cache) is cache_utils.DynamicCache and all(type(layer) in _LAYERS for layer in cache.layers)


def join(caches: list):
    """One cache whose row i is caches[i]."""
    return _with_layers(caches[0], [_join_layers(layers) for layers in zip(*(cache.layers for cache in caches))])


def split(cache, row: int, length: int):
    """The cache of one row, whose text has `length` tokens."""
    def of_row(tensor, dim):
        kept = min(length, tensor.shape[dim])
        return tensor[row:row + 1].narrow(dim, tensor.shape[dim] - kept, kept).clone()

    return _mapped(cache, of_row, lambda tensor: tensor[row:row + 1].clone(), length)


def blank(cache, length: int):
    """A cache like that of one row after `length` tokens, filled with zeros: costs are timed with it."""
    def zeros(tensor, dim, window):
        shape = list(tensor.shape)
        shape[dim] = min(length, window)
        return tensor.new_zeros(shape)

    layers = []
    for layer in cache.layers:
        window = getattr(layer, "sliding_window", length + 1) - 1
        layers.append(_mapped_layer(layer, lambda tensor, dim, w=window: zeros(tensor, dim, w),
                                    torch.zeros_like, length))
    return _with_layers(cache, layers)


def _with_layers(cache, layers):
    out = copy.copy(cache)
    out.layers = layers
    return out


def _mapped(cache, of_positions, of_state, length):
    return _with_layers(cache, [_mapped_layer(layer, of_positions, of_state, length) for layer in cache.layers])


def _mapped_layer(layer, of_positions, of_state, length):
    out = _copied(layer)
    for name, dim in _OF_POSITIONS.items():
        tensor = getattr(layer, name, None)
        if tensor is not None and tensor.numel() > 0:
            setattr(out, name, of_positions(tensor, dim))
    for name in _STATES:
        states = getattr(layer, name, None) or {}
        for i, tensor in states.items():
            if tensor is not None:
                getattr(out, name)[i] = of_state(tensor)
    if hasattr(layer, "cumulative_length"):
        out.cumulative_length = length
    return out


def _join_layers(layers):
    first = layers[0]
    out = _copied(first)
    for name, dim in _OF_POSITIONS.items():
        tensors = [getattr(layer, name, None) for layer in layers]
        if all(tensor is not None and tensor.numel() > 0 for tensor in tensors):
            width = max(tensor.shape[dim] for tensor in tensors)
            setattr(out, name, torch.cat([_padded(tensor, dim, width) for tensor in tensors]))
    for name in _STATES:
        for i, tensor in (getattr(first, name, None) or {}).items():
            if tensor is not None:
                getattr(out, name)[i] = torch.cat([getattr(layer, name)[i] for layer in layers])
    if hasattr(first, "cumulative_length"):
        out.cumulative_length = max(layer.cumulative_length for layer in layers)
    return out


def _copied(layer):
    out = copy.copy(layer)
    for name, value in vars(layer).items():
        if isinstance(value, dict):
            setattr(out, name, dict(value))
    return out


def _padded(tensor, dim, width):
    missing = width - tensor.shape[dim]
    if missing == 0:
        return tensor
    shape = list(tensor.shape)
    shape[dim] = missing
    return torch.cat([tensor.new_zeros(shape), tensor], dim)
