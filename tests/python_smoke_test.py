"""Loads the library into a torch and tries its operators there: into Debian's
python3-torch in `make test`, as the installed package in `make test-python`."""

import sys
import unittest
from importlib.util import find_spec
from pathlib import Path

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import gradcheck

if find_spec("lagwise") is None:  # not installed
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

    def test_gates_and_writing_strengths_have_gradients(self):
        gates = (-torch.rand(1, 2, 5, dtype=torch.double)).requires_grad_()
        strengths = (0.2 * torch.rand(1, 2, 5, dtype=torch.double)).requires_grad_()

        def gated(q, k, v, log_decay, write_strength=None):
            return lagwise.ops.linear_attention(
                q, k, v, causal=True, denominator="none", log_decay=log_decay,
                write_strength=write_strength)

        self.assertTrue(gradcheck(gated, (self.q, self.k, self.v, gates)))
        self.assertTrue(gradcheck(gated, (self.q, self.k, self.v, gates, strengths)))
        with self.refused("denominator", "write_strength"):
            lagwise.ops.linear_attention(
                self.q, self.k, self.v, causal=True, write_strength=strengths)

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

    def test_half_is_refused_by_name_of_what_is_taken(self):
        q, k, v = (x.detach().half() for x in (self.q, self.k, self.v))
        with self.refused("Float, Double or BFloat16", "Half"):
            elu1(q, k, v)

    def test_a_step_tells_autograd_of_all_it_writes(self):
        s, z, m = torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3), torch.zeros(1, 2)
        q, v = torch.rand(1, 2, 3), torch.rand(1, 2, 4)
        before = [x._version for x in (s, z, m)]
        lagwise.ops.linear_attention_step(
            q, q, v, s, z, m, eps=0.0, log_scale=torch.ones(1, 2))
        self.assertTrue(all(x._version > old for x, old in zip((s, z, m), before)))


class ExactAttention(unittest.TestCase):
    def test_nan_in_gives_nan_out(self):
        for n in (5, 64, 70, 300):
            for dtype in (torch.float, torch.double):
                for bad in (float("nan"), float("inf")):
                    q, k, v = (torch.randn(1, 1, n, 4, dtype=dtype) for _ in range(3))
                    q[0, 0, 2] = bad
                    out = lagwise.ops.exact_attention(q, k, v, causal=True)
                    self.assertTrue(out[0, 0, 2].isnan().all(), (n, dtype, bad))
                    self.assertTrue(out[0, 0, 3:].isfinite().all())


    def test_a_bias_per_key_has_gradients(self):
        q, k, v, bias = draw(1, 2, 5, 3), draw(1, 2, 5, 3), draw(1, 2, 5, 4), draw(1, 2, 5)

        def biased(q, k, v, bias):
            return lagwise.ops.exact_attention(q, k, v, causal=True, key_bias=bias)

        self.assertTrue(gradcheck(biased, (q, k, v, bias), check_undefined_grad=False))


class WithoutNumbers(unittest.TestCase):
    """Operators and their gradients under FakeTensor: shapes, and no reading."""

    def expect_gradients(self, act, *inputs):
        with FakeTensorMode() as mode:
            fake = [mode.from_tensor(x) for x in inputs]
            fake = [x.requires_grad_() if i.requires_grad else x
                    for x, i in zip(fake, inputs)]
            wanted = [x for x in fake if x.requires_grad]
            out = act(*fake)
            for x, g in zip(wanted, torch.autograd.grad(out.sum(), wanted)):
                self.assertEqual(g.shape, x.shape)

    def test_steps_of_exact_attention(self):
        with FakeTensorMode():
            q, k, v = torch.empty(1, 2, 3), torch.empty(1, 2, 9, 3), torch.empty(1, 2, 9, 5)
            out = lagwise.ops.exact_attention_step(q, k, v, lag_bias=torch.empty(2, 9))
            self.assertEqual(out.shape, (1, 2, 5))

    def test_gradients(self):
        x, ops = draw(1, 2, 5, 4), lagwise.ops
        self.expect_gradients(lambda x: ops.feature_map(x, "elu1"), x)
        self.expect_gradients(
            lambda x, w: ops.favor_features(x, w)[0], x, draw(6, 4, grad=False))
        self.expect_gradients(
            lambda q, k, v, bias: ops.toeplitz_linear(q, k, v, bias),
            x, draw(1, 2, 7, 4), draw(1, 2, 7, 3), draw(2, 11))
        self.expect_gradients(
            lambda q, f, p, a, z: ops.sine_spe(
                q, q, f, p, a, None, torch.arange(5.0).double(),
                torch.arange(5.0).double(), z, None, None, 6)[0],
            x, draw(2, 4, 3), draw(2, 4, 3), draw(2, 4, 3), draw(2, 4, 6, 6, grad=False))


class Noise(unittest.TestCase):
    """Random numbers are functions of their coordinates: the same from every operator."""

    def test_noise_of_sine_spe(self):
        z, gate = lagwise.ops.sine_spe_noise(2, 3, 4, 50, seed=5, layer=1)
        code = lagwise.ops.noise("normal", 50, seed=5, stream=3, head=1, feature=2 * 8 + 3)
        self.assertTrue(torch.equal(z[1, 2, 3], code))
        row = lagwise.ops.noise("normal", 50, seed=5, stream=5, layer=1, head=1, feature=2)
        self.assertTrue(torch.equal(gate[1, 2], row))
        fold = lagwise.ops.sine_spe_fold(2, 3, 4, 10)
        self.assertEqual(fold.shape, (2, 27))
        self.assertTrue(((fold.abs() >= 1) & (fold.abs() <= 10)).all())

    def test_directions_of_favor(self):
        rows = lagwise.ops.favor_directions(8, 8, orthogonal=True, seed=3)
        unit = rows / rows.norm(dim=1, keepdim=True)
        torch.testing.assert_close(unit @ unit.T, torch.eye(8, dtype=torch.double))
        self.assertTrue(torch.equal(rows[:5], lagwise.ops.favor_directions(5, 8, seed=3)))


class PrivateOperators(unittest.TestCase):
    """Registered like the others, so anyone can call them: refused, not crashed."""

    def refused(self, act):
        with self.assertRaises(RuntimeError) as caught:
            act()
        self.assertIn("expected", str(caught.exception).splitlines()[0])

    def test_inputs_that_do_not_fit(self):
        x, small, ops = torch.randn(1, 1, 4, 4), torch.randn(3), lagwise.ops
        for wrong in ((small, x, x), (x, small, x), (x, x, small)):
            self.refused(lambda: ops._linear_attention(*wrong, causal=True))
            self.refused(lambda: ops._linear_attention_backward(
                x, None, None, [True] * 11, x, x, x, x, x, *wrong, causal=True))
            self.refused(lambda: ops._exact_attention(*wrong))
            self.refused(lambda: ops._exact_attention_backward(
                x, [True] * 7, x, x, *wrong))

    def test_gradients_that_do_not_fit(self):
        x, small, ops = torch.randn(1, 1, 64, 4), torch.randn(3), lagwise.ops
        qkv, wanted = (x, x, x), [True] * 11
        good = ops._linear_attention(*qkv, causal=True)
        ops._linear_attention_backward(x, None, None, wanted, *good, *qkv, causal=True)
        for i in range(4):
            bad = [small if j == i else y for j, y in enumerate(good)]
            self.refused(lambda: ops._linear_attention_backward(
                x, None, None, wanted, *bad, *qkv, causal=True))
        for d in ((small, None, None), (x, small, None), (x, None, small), (x.double(),) * 3):
            self.refused(lambda: ops._linear_attention_backward(
                *d, wanted, *good, *qkv, causal=True))
        self.refused(lambda: ops._linear_attention_backward(
            x, None, None, [True], *good, *qkv, causal=True))
        out, stats = ops._exact_attention(*qkv)
        ops._exact_attention_backward(x, [True] * 7, out, stats, *qkv)
        for d, *saved in ((small, out, stats), (x, small, stats), (x, out, small), (None, out, stats)):
            self.refused(lambda: ops._exact_attention_backward(d, [True] * 7, *saved, *qkv))
        self.refused(lambda: ops._exact_attention_backward(x, [True], out, stats, *qkv))
        self.refused(lambda: ops._feature_map_backward(
            small, [True], torch.randn(4, 4), "elu1"))
        y, log_scale = ops.favor_features(x, torch.randn(6, 4))
        w = torch.randn(6, 4)
        for dy, dl, z in ((small, None, y), (None, small, y), (y, None, small)):
            self.refused(lambda: ops._favor_features_backward(
                dy, dl, [True], z, log_scale, x, w, "positive", 0.0))
        table = torch.randn(1, 1, 64, 4)
        for g, given in ((small, x), (x, small), (x, None)):
            self.refused(lambda: ops._rotate_backward(
                g, [True, True], given, table, "half", False))
        positions, frequency = torch.rand(1, 64, 1).double(), torch.rand(1, 2).double()
        self.refused(lambda: ops._rotation_table_backward(
            small, [True], table, positions, frequency, 1.0, torch.float))
        y, inverse = ops._rms_norm(x, torch.ones(4), 1e-5)
        for given in ((small, inverse), (y, small)):
            self.refused(lambda: ops._rms_norm_backward(
                given[0], [True, True], given[1], x, torch.ones(4), 1e-5))
        rows, taps = x[0], torch.randn(4, 4)
        for dy, before in ((small, None), (rows, small)):
            self.refused(lambda: ops._short_convolution_backward(
                dy, [True] * 3, rows, taps, before))
        bias = torch.randn(1, 127)
        out, sums = ops._toeplitz_linear(x, x, x, bias, 1e-6)
        for given in ((small, out, sums), (x, small, sums), (x, out, small)):
            self.refused(lambda: ops._toeplitz_linear_backward(
                given[0], [True] * 4, *given[1:], x, x, x, bias, 1e-6))


if __name__ == "__main__":
    unittest.main()
