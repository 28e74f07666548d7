"""Other packages read the MIDI files that the program writes."""

import pytest


@pytest.fixture(scope="module")
def songs(program, tmp_path_factory):
    folder = tmp_path_factory.mktemp("songs")
    program("data", "grooves", "--songs", 3, "--seed", 1, "--midi", "--out", folder / "set")
    files = sorted(folder.rglob("*.mid"))
    assert files
    return files


def test_symusic_reads_our_midi(songs):
    symusic = pytest.importorskip("symusic", reason="symusic is not installed")
    for file in songs:
        score = symusic.Score(file)
        assert sum(len(track.notes) for track in score.tracks) > 20
        assert any(track.is_drum for track in score.tracks)
        for track in score.tracks:
            assert all(note.duration > 0 and 0 <= note.pitch < 128 for note in track.notes)


def test_miditok_makes_tokens_of_our_midi(songs):
    miditok = pytest.importorskip("miditok", reason="miditok is not installed")
    tokenizer = miditok.REMI(miditok.TokenizerConfig(use_programs=True, num_velocities=8))
    for file in songs:
        tokens = tokenizer(file)
        again = tokenizer.decode(tokens)
        written = sum(len(track.notes) for track in again.tracks)
        assert len(tokens.ids) > 60 and written > 20
