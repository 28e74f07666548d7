#include "lagwise/data/formats/smf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace lagwise::testing;
using namespace std::string_literals;

const std::string kEnd = "\x00\xFF\x2F\x00"s;

std::string big_endian(size_t value, int bytes) {
  std::string out;
  for (int i = bytes; i-- > 0;) out.push_back(static_cast<char>(value >> 8 * i & 0xFF));
  return out;
}

std::string track(const std::string& events) {
  return "MTrk" + big_endian(events.size(), 4) + events;
}

std::string file_of(size_t format, const std::vector<std::string>& tracks,
                    size_t division = 96) {
  std::string file = "MThd" + big_endian(6, 4) + big_endian(format, 2) +
                     big_endian(tracks.size(), 2) + big_endian(division, 2);
  for (const std::string& events : tracks) file += track(events);
  return file;
}

Music parse(const std::string& file, SmfRepairs* repairs = nullptr) {
  return parse_smf("x.mid", bytes_of(file), repairs);
}

std::string complaint(const std::string& file) {
  return data_error([&] { parse(file); });
}

// What a file with one track of these events (and an end) complains of.
std::string track_complaint(const std::string& events) {
  return complaint(file_of(0, {events}));
}

TEST(Smf, ReadsRunningStatusAndBothKindsOfNoteOff) {
  const Music music = parse(file_of(0, {"\x00\x90\x3C\x40\x10\x3E\x41\x10\x3C\x00"s +
                                        "\x81\x00\x80\x3E\x00"s + kEnd}));
  ASSERT_EQ(music.tracks.size(), 1u);
  EXPECT_THAT(music.tracks[0].notes,
              ElementsAre(Note{0, 32, 60, 64}, Note{16, 160, 62, 65}));
  EXPECT_EQ(music.ticks_per_beat, 96);
  EXPECT_EQ(music.end, 160);
}

TEST(Smf, ReadsTheMaps) {
  const Music music = parse(
      file_of(1, {"\x00\xFF\x51\x03\x07\xA1\x20\x00\xFF\x58\x04\x06\x03\x24\x08"s +
                      "\x60\xFF\x51\x03\x03\xD0\x90\x00\xFF\x59\x02\xFD\x01"s + kEnd,
                  "\x00\xFF\x03\x04"
                  "bass"s +
                      "\x00\xC2\x21\x00\x92\x20\x50\x60\x20\x00"s +
                      "\x00\xFF\x06\x03"
                      "end"s +
                      kEnd}));
  EXPECT_THAT(music.tempos, ElementsAre(Tempo{0, 500000}, Tempo{96, 250000}));
  EXPECT_THAT(music.time_signatures, ElementsAre(TimeSignature{0, 6, 8, 36, 8}));
  EXPECT_THAT(music.key_signatures, ElementsAre(KeySignature{96, -3, true}));
  EXPECT_THAT(music.texts, ElementsAre(Text{96, Text::kMarker, "end"}));
  ASSERT_EQ(music.tracks.size(), 1u);
  EXPECT_EQ(music.tracks[0].name, "bass");
  EXPECT_EQ(music.tracks[0].program, 33);
  EXPECT_EQ(music.tracks[0].channel, 2);
}

TEST(Smf, SplitsATrackByChannel) {
  const Music music = parse(file_of(0, {"\x00\x90\x3C\x40\x00\x99\x24\x40"s +
                                        "\x10\x90\x3C\x00\x00\x99\x24\x00"s + kEnd}));
  ASSERT_EQ(music.tracks.size(), 2u);
  EXPECT_FALSE(music.tracks[0].drums());
  EXPECT_TRUE(music.tracks[1].drums());
}

TEST(Smf, ANoteOffEndsAllThatBeganEarlier) {
  SmfRepairs repairs;
  const Music music = parse(
      file_of(0, {"\x00\x90\x3C\x40\x08\x3C\x41\x08\x3C\x42\x00\x3C\x00\x08\x3C\x00"s +
                  kEnd}),
      &repairs);
  EXPECT_THAT(
      music.tracks[0].notes,
      ElementsAre(Note{0, 16, 60, 64}, Note{8, 16, 60, 65}, Note{16, 24, 60, 66}));
  EXPECT_EQ(repairs.unpaired_ons + repairs.unpaired_offs + repairs.empty_notes, 0);
}

TEST(Smf, CountsWhatHasNoPair) {
  SmfRepairs repairs;
  const Music music = parse(
      file_of(0, {"\x00\x90\x3C\x40\x00\x3C\x00\x00\x3C\x00\x00\x3E\x40"s + kEnd}),
      &repairs);
  EXPECT_THAT(music.tracks[0].notes, IsEmpty());
  EXPECT_EQ(repairs.empty_notes, 1);
  EXPECT_EQ(repairs.unpaired_offs, 1);
  EXPECT_EQ(repairs.unpaired_ons, 1);
}

TEST(Smf, SmpteDivisionBecomesBeatsOfASecond) {
  const std::string events = "\x00\xFF\x51\x03\x07\xA1\x20"s + kEnd;
  const Music music = parse(file_of(0, {events}, 0xE728));  // 25 frames of 40 ticks
  EXPECT_EQ(music.ticks_per_beat, 1000);
  EXPECT_THAT(music.tempos, ElementsAre(Tempo{0, 1000000}));
  const Music drop = parse(file_of(0, {events}, 0xE302));  // 29.97
  EXPECT_DOUBLE_EQ(seconds_at(drop, 60), 1.001);
}

Music everything() {
  Music music;
  music.ticks_per_beat = 24;
  music.tempos = {{0, 400000}, {0, 500000}, {77, 0xFFFFFF}};
  music.time_signatures = {{0, 3, 4, 24, 8}, {72, 7, 16, 12, 8}};
  music.key_signatures = {{0, 7, false}, {5, -7, true}};
  music.texts = {{0, Text::kTrackName, "a"},
                 {0, Text::kTrackName, "b"},
                 {3, Text::kLyric, std::string(300, 'x')},
                 {9, 15, "\xFF\x00z"s}};
  music.other = {{0, "\xF0\x43\x12\xF7"},
                 {1, "\xFF\x7F\x00\x01"s},
                 {2, "\xFF\x00\x00\x05"s},
                 {2, "\xF7\x01"},
                 {2, "\xFF\x54\x01\x02\x03\x04\x05"}};
  Track bass{"bass",
             1,
             33,
             {{0, 5, 30, 1}, {0, 5, 30, 2}, {5, 9, 30, 127}, {8, 9, 30, 7}},
             {{0, "\xB1\x07\x40"},
              {4, "\xC1\x05"},
              {4, "\xE1\x01\x02"},
              {4, "\xA1\x3C\x01"},
              {9, "\xD1\x11"}}};
  Track silent{"", 9, 127, {}, {}};
  music.tracks = {bass, silent, bass};
  music.end = 1 << 20;
  return music;
}

TEST(Smf, WhatIsWrittenIsReadBack) {
  const Music music = everything();
  SmfRepairs repairs;
  EXPECT_EQ(parse(smf_bytes(music), &repairs), music);
  EXPECT_EQ(repairs.unpaired_ons + repairs.unpaired_offs + repairs.empty_notes, 0);
}

TEST(Smf, WritesAFile) {
  const TempFolder folder;
  write_smf(folder / "a.mid", everything());
  EXPECT_EQ(read_smf(folder / "a.mid"), everything());
}

TEST(Smf, PassesOverUnknownChunksAndLongerHeaders) {
  std::string file = "MThd" + big_endian(8, 4) + "\x00\x00\x00\x01\x00\x60zz"s;
  file += "XFIH" + big_endian(2, 4) + "??" + track(kEnd);
  EXPECT_THAT(parse(file).tracks, IsEmpty());
}

TEST(Smf, RefusesABadHeader) {
  EXPECT_THAT(complaint(""), HasSubstr("byte 0: expected 4 bytes of MThd"));
  EXPECT_THAT(complaint("R"), HasSubstr("byte 0"));
  EXPECT_THAT(complaint("RIFFxxxx"), HasSubstr("byte 0: expected MThd"));
  EXPECT_THAT(complaint(file_of(2, {kEnd})),
              HasSubstr("byte 8: expected format 0 or 1, got 2"));
  EXPECT_THAT(complaint(file_of(1, {})), HasSubstr("byte 10: expected a track"));
  EXPECT_THAT(complaint(file_of(0, {kEnd, kEnd})),
              HasSubstr("byte 10: expected one track"));
  EXPECT_THAT(complaint(file_of(0, {kEnd}, 0)),
              HasSubstr("byte 12: expected a division"));
  EXPECT_THAT(complaint(file_of(0, {kEnd}, 0xE700)),
              HasSubstr("byte 12: expected a division"));
  EXPECT_THAT(complaint(file_of(0, {kEnd}, 0x9128)),
              HasSubstr("24, 25, 29 or 30 frames"));
  EXPECT_THAT(complaint("MThd" + big_endian(6, 4) + "\x00\x01\xFF\xFF\x00\x60"s),
              HasSubstr("at most 1024 tracks"));
  EXPECT_THAT(complaint("MThd" + big_endian(5, 4) + std::string(5, '\0')),
              HasSubstr("byte 4: expected a header of at least 6 bytes"));
}

TEST(Smf, RefusesBadEvents) {
  EXPECT_THAT(track_complaint(""), HasSubstr("byte 22: expected 1 bytes of time"));
  EXPECT_THAT(track_complaint("\x00\x3C\x40"s),
              HasSubstr("byte 23: expected a status byte"));
  EXPECT_THAT(track_complaint("\x00\xF0\x00\x00\x3C\x40"s),
              HasSubstr("expected a status byte of"));
  EXPECT_THAT(track_complaint("\x00\xF4"s),
              HasSubstr("byte 23: expected a status byte a file"));
  EXPECT_THAT(track_complaint("\x80\x80\x80\x80\x00"s),
              HasSubstr("at most four bytes"));
  EXPECT_THAT(track_complaint("\x00\x90\x80\x40"s),
              HasSubstr("byte 24: expected a data byte"));
  EXPECT_THAT(track_complaint("\x00\x90\x3C"s),
              HasSubstr("byte 25: expected 1 bytes of event"));
  EXPECT_THAT(track_complaint("\x00\xFF\x80\x00"s),
              HasSubstr("byte 24: expected a type of meta"));
  EXPECT_THAT(track_complaint("\x00\xFF\x01\x05"
                              "abc"s),
              HasSubstr("5 bytes of meta event"));
  EXPECT_THAT(track_complaint("\x00\xF0\xFF\xFF\xFF\x7F"s),
              HasSubstr("268435455 bytes of system"));
  EXPECT_THAT(track_complaint("\x00\xFF\x51\x02\x07\xA1"s),
              HasSubstr("a tempo of three bytes"));
  EXPECT_THAT(track_complaint("\x00\xFF\x51\x03\x00\x00\x00"s),
              HasSubstr("above zero"));
  EXPECT_THAT(track_complaint("\x00\xFF\x58\x04\x00\x02\x18\x08"s),
              HasSubstr("time signature"));
  EXPECT_THAT(track_complaint("\x00\xFF\x58\x04\x04\x08\x18\x08"s),
              HasSubstr("time signature"));
  EXPECT_THAT(track_complaint("\x00\xFF\x59\x02\x08\x00"s),
              HasSubstr("seven accidentals"));
  EXPECT_THAT(track_complaint("\x00\xFF\x2F\x01\x00"s),
              HasSubstr("no bytes in the end"));
  EXPECT_THAT(track_complaint(kEnd + "\x00"s), HasSubstr("the end of the chunk"));
  EXPECT_THAT(track_complaint("\xFF\xFF\xFF\x7F\xC0\x00\x01\xC0\x00"s),
              HasSubstr("byte 28: expected a time below 2^28"));
}

TEST(Smf, ACutFileNeverReads) {
  const std::string whole = smf_bytes(everything());
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(parse(whole.substr(0, length)), DataError) << length;
}

TEST(Smf, EveryRealFileSurvivesReadWriteRead) {
  const TempFolder scratch;
  int64_t files = 0, unpaired = 0;
  for (const char* set : {"pop1k7", "pop909", "groove_midi", "nottingham"}) {
    const std::string folder = real_data(set, scratch);
    LAGWISE_NEEDS_DATA(folder, set);
    for (const std::string& file : midi_files(folder)) {
      SmfRepairs repairs;
      const Music music = read_smf(file, &repairs);
      ASSERT_EQ(parse(smf_bytes(music)), music) << file;
      unpaired += repairs.unpaired_ons;
      ++files;
    }
  }
  RecordProperty("files", std::to_string(files));
  RecordProperty("unpaired", std::to_string(unpaired));
  EXPECT_GT(files, 200);
}

}  // namespace
}  // namespace lagwise::data
