"""Loads the library into Debian's python3-torch and tries its operators there."""

import sys
import unittest
from pathlib import Path

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import gradcheck

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import lagwise  # noqa: E402


def draw(*shape, grad=True):
    return torch.randn(*shape, dtype=torch.double).requires_grad_(grad)


def elu1(q, k, v, decay=None):
    return lagwise.ops.linear_attention(
        q, k, v, causal=True, feature_map="elu1", decay=decay)


class LinearAttention(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.q, self.k, self.v = draw(1, 2, 5, 3), draw(1, 2, 5, 3), draw(1, 2, 5, 4)

    def refused(self, *words):
        """A refusal: one line with the operator's name and the given words."""
        test = self

        class Refused:
            def __enter__(self):
                return self

            def __exit__(self, kind, error, trace):
                test.assertIsNotNone(kind, "was not refused")
                line = str(error).splitlines()[0]
                for word in ("linear_attention", *words):
                    test.assertIn(word, line)
                return True

        return Refused()

    def test_gives_the_definition(self):
        phi = [torch.nn.functional.elu(x) + 1 for x in (self.q, self.k)]
        scores = (phi[0] @ phi[1].transpose(-1, -2)).tril()
        expected = scores @ self.v / (scores.sum(-1, keepdim=True) + 1e-6)
        torch.testing.assert_close(elu1(self.q, self.k, self.v), expected)

    def test_gradients_equal_finite_differences(self):
        self.assertTrue(gradcheck(elu1, (self.q, self.k, self.v)))
        for shape in [(2,), (2, 3)]:
            decay = (-torch.rand(*shape, dtype=torch.double)).requires_grad_()
            self.assertTrue(gradcheck(elu1, (self.q, self.k, self.v, decay)))

    def test_double_backward_is_refused(self):
        (dq,) = torch.autograd.grad(
            elu1(self.q, self.k, self.v).square().sum(), self.q, create_graph=True)
        with self.refused("second time"):
            torch.autograd.grad(dq.sum(), self.q)

    def test_meta_tensors_give_the_shape(self):
        q, k, v = (x.detach().to("meta") for x in (self.q, self.k, self.v))
        out = elu1(q, k, v)
        self.assertEqual((out.device.type, out.shape), ("meta", v.shape))

    def test_fake_tensors_give_the_shape(self):
        with FakeTensorMode():
            q, v = torch.empty(1, 2, 5, 3), torch.empty(1, 2, 5, 4)
            self.assertEqual(elu1(q, q, v).shape, v.shape)

    def test_a_mask_is_refused(self):
        with self.refused("mask"):
            lagwise.ops.linear_attention(
                self.q, self.k, self.v, attn_mask=torch.ones(5, 5, dtype=torch.bool))

    def test_integers_are_refused(self):
        q, k, v = (x.detach().long() for x in (self.q, self.k, self.v))
        with self.refused("floating-point", "Long"):
            elu1(q, k, v)


if __name__ == "__main__":
    unittest.main()
