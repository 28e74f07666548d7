#include "lagwise/data/sources/recognised.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/sets/examples.h"
#include "lagwise/data/sources/pair_examples.h"
#include "lagwise/data/testing_files.h"
#include "lagwise/data/testing_gzip.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace lagwise::testing;

struct RecognisedPath : ::testing::Test {
  const TempFolder folder;

  /// "kind/form: seen | seen"; what is none has its reason in place of the kind.
  std::string look(const std::string& name) const {
    const Recognised found = recognise(folder / name);
    std::string said = found.kind.empty() ? "(" + found.why + ")" : found.kind;
    if (!found.form.empty()) said += "/" + found.form;
    for (const std::string& line : found.seen)
      said += (&line == &found.seen[0] ? ": " : " | ") + line;
    return said;
  }
  std::string table(const std::string& name, const std::string& contents) const {
    put(folder / name, contents);
    return look(name);
  }
};

TEST_F(RecognisedPath, TellsTablesByTheirColumns) {
  EXPECT_EQ(table("a.tsv", "source\ttarget\nab\tabc\nx\ty\n"),
            "pairs: pairs of texts: train 2 | the longest source has 2 bytes, the "
            "longest target 3");
  EXPECT_EQ(recognise(folder / "a.tsv").length, 4);
  EXPECT_EQ(table("a.jsonl", "{\"src\": \"a\", \"tgt\": \"b\"}\n"),
            "pairs: pairs of texts: train 1 | the longest source has 1 bytes, the "
            "longest target 1");
  EXPECT_EQ(table("b.csv", "text;label\nfine;good\nawful;bad\n"),
            "text: labelled texts: train 2 | 2 labels: bad, good");
  EXPECT_EQ(
      table("b.jsonl", "{\"text\": \"a text that has no label, none at all..\"}\n"),
      "language: text; bytes: test 2, train 36, valid 2");
  EXPECT_THAT(table("c.csv", "x,y\n1,2\n"),
              HasSubstr("(columns source and target, or text and label, in "));
  EXPECT_EQ(table("d.tsv", "1\t3\t4\tone text\tanother\n"),
            "retrieval: a table of two texts and whether they belong together");
}

TEST_F(RecognisedPath, TellsPackedTablesToo) {
  EXPECT_EQ(table("a.csv.gz", gzip("text,label\na,x\nb,y\n")),
            "text: labelled texts: train 2 | 2 labels: x, y");
  put(folder / "t/a.jsonl.gz", gzip("{\"text\": \"some text\"}\n"));
  put(folder / "t/b.jsonl", "{\"text\": \"and more of it\"}\n");
  EXPECT_THAT(look("t"),
              StartsWith("language: 2 tables | text; bytes: test 1, train 23, "
                         "valid 1 | 2 documents, read as one text; "));
}

TEST_F(RecognisedPath, SaysWhyATableCannotBeRead) {
  std::filesystem::create_directories(folder / "d/train.csv");
  EXPECT_THAT(data_error([&] { look("d"); }),
              HasSubstr("d/train.csv: expected a readable file, got a folder"));
  std::filesystem::create_directories(folder / "l");
  std::filesystem::create_symlink("nowhere", folder / "l/a.csv");
  EXPECT_THAT(data_error([&] { look("l"); }),
              HasSubstr("l/a.csv: expected a readable file: No such file"));
  std::filesystem::create_symlink("circle", folder / "circle");
  EXPECT_THAT(data_error([&] { look("circle"); }),
              HasSubstr("circle: expected a readable file: "));
  EXPECT_THAT(data_error([&] { table("u.csv", std::string("\xFF\xFEt\0e\0", 6)); }),
              HasSubstr("u.csv, byte 0: expected text in UTF-8, got UTF-16"));
  EXPECT_THAT(data_error([&] { table("x.jsonl", "{\"text\": \n"); }),
              HasSubstr("x.jsonl, line 1"));
}

TEST_F(RecognisedPath, SaysTheRowThatIsWrong) {
  EXPECT_THAT(
      data_error([&] { table("a.tsv", "source\ttarget\na\tb\nc\t\n"); }),
      HasSubstr("a.tsv, row 3, byte 18: expected a target, got an empty field"));
}

TEST_F(RecognisedPath, TellsTextsFromOtherFiles) {
  EXPECT_EQ(table("a.txt", std::string(100, 'a')),
            "language: text; bytes: test 5, train 90, valid 5");
  EXPECT_EQ(table("novel", std::string(70000, 'a')).substr(0, 8), "language");
  std::string cut = "a";  // a character of two bytes stands across the border of a look
  for (int i = 0; i < 40000; ++i) cut += "\xC3\xA4";
  EXPECT_EQ(table("umlauts", cut).substr(0, 8), "language");
  EXPECT_EQ(table("x.bin", std::string("\0\1\2", 3)),
            "(text, a table, or a folder of music or pictures): a file of 3 bytes");
  EXPECT_EQ(table("x.tar.xz", "?"),
            "(files as they are: unpack these first): a packed file");
  EXPECT_EQ(table("x.tar.gz", "?"),
            "(files as they are: unpack these first): a packed file");
  EXPECT_THAT(table("x.mid", "MThd"), HasSubstr("a prompt for lagwise generate"));
  EXPECT_THAT(table("x.PNG", "?"), HasSubstr("for lagwise predict"));
  EXPECT_THAT(table("x.json", "{}"), HasSubstr("chorales as in Jsb16thSeparated.json"));
  EXPECT_EQ(table("c.json",
                  "{\"train\": [[[60, 55, 52, 48]]], \"valid\": [[[60, 55, 52, "
                  "48]]], \"test\": [[[60, 55, 52, 48]]]}"),
            "harmonise: chorales: test 1, train 1, valid 1");
}

TEST_F(RecognisedPath, TellsFoldersByTheirFiles) {
  put(folder / "m/a/x.mid", "");
  put(folder / "m/b/y.MIDI", "");
  put(folder / "m/README.txt", "about");
  EXPECT_EQ(look("m"), "midi: 2 MIDI files | 1 other file");
  put(folder / "p/cat/1.png", "");
  put(folder / "p/dog/1.JPG", "");
  put(folder / "p/dog/2.jpeg", "");
  EXPECT_EQ(look("p"), "images/folders: 3 pictures");
  put(folder / "loose/1.png", "");
  EXPECT_EQ(
      look("loose"),
      "(a folder for each of two classes or more with its pictures in it, got 0): 1 "
      "picture");
  put(folder / "t/1.txt", "some text");
  put(folder / "t/2.txt", "and more of it");
  EXPECT_THAT(look("t"),
              StartsWith("language: 2 texts | text; bytes: test 1, train 21, "
                         "valid 1 | 2 documents, read as one text; "));
  EXPECT_EQ(recognise(folder / "t").length, 1);  // what the shortest split has room for
  put(folder / "one/pairs.csv", "source,target\na,b\n");
  EXPECT_EQ(look("one").substr(0, 15), "pairs: 1 table ");
  EXPECT_EQ(recognise(folder / "one").path, folder / "one/pairs.csv");
}

TEST_F(RecognisedPath, TellsKnownSetsByTheirNames) {
  put(folder / "mnist/train-images-idx3-ubyte.gz", "");
  EXPECT_EQ(look("mnist"), "images/mnist: 1 other file | the files of MNIST");
  put(folder / "cifar/data_batch_1.bin", "");
  EXPECT_EQ(look("cifar"), "images/cifar10: 1 other file | the files of CIFAR-10");
  put(folder / "lra/basic_train.tsv", "");
  EXPECT_EQ(look("lra"), "listops: 1 table | the tables of ListOps");
  put(folder / "pf/metadata/1.npy", "");
  put(folder / "pf/imgs/1/a.png", "");
  EXPECT_EQ(look("pf").substr(0, 11), "pathfinder:");
  for (const char* label : {"pos", "neg"})
    put(folder / "imdb/train/" + label + "/0_1.txt", "x");
  EXPECT_THAT(look("imdb"), HasSubstr("labelled texts: train 2 | 2 labels: neg, pos"));
  put(folder / "wiki/wiki.train.tokens", "words");
  EXPECT_THAT(look("wiki"), HasSubstr("language: "));
  put(folder / "s/train.tsv", "sentence\tlabel\na\t0\nb\t1\n");
  put(folder / "s/dev.tsv", "sentence\tlabel\na\t0\n");
  EXPECT_EQ(look("s"),
            "text: 2 tables | labelled texts: train 2, valid 1 | 2 labels: 0, 1");
  put(folder / "aan/new_aan_pairs.train.tsv", "0\t1\t2\ta\tb\n");
  EXPECT_THAT(look("aan"), HasSubstr("retrieval: 1 table | tables of two texts"));
}

TEST_F(RecognisedPath, TellsAPreparedSet) {
  ExampleWriter writer(folder / "set", {"", kPairsScheme, 256, {}, {}}, kPairsLayout);
  writer.add("train", {0, {1}, {2, 3, 4}});
  writer.commit();
  EXPECT_EQ(look("set"),
            "set/pairs: a prepared set of scheme pairs | sequences: train 2");
  EXPECT_EQ(recognise(folder / "set").length, 4);
}

TEST_F(RecognisedPath, SaysWhatItSawWhereItIsNone) {
  put(folder / "x/a.mid", "");
  put(folder / "x/a.txt", "text");
  EXPECT_EQ(look("x"), "(files of one kind, got several): 1 MIDI file | 1 text");
  put(folder / "w/a.bin.xz", "");
  put(folder / "w/a.txt", "text");
  EXPECT_EQ(look("w"), "(files of one kind, got several): 1 text | 1 packed file");
  put(folder / "y/a.exe", "");
  EXPECT_EQ(look("y"),
            "(music, pictures, tables or texts, got none of these): 1 other file");
  put(folder / "z/a.csv", "source,target\na,b\n");
  put(folder / "z/b.csv", "source,target\na,b\n");
  EXPECT_EQ(look("z"), "(one table, or those called train, valid and test): 2 tables");
  EXPECT_THAT(data_error([&] { look("nowhere"); }),
              HasSubstr("nowhere: expected a file or a folder; nothing is there"));
}

}  // namespace
}  // namespace lagwise::data
