#include "lagwise/data/sets/text_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"

namespace lagwise::data {
namespace {

using ::testing::HasSubstr;
using namespace lagwise::testing;

TEST(TextCorpus, OpensAFileOrAFolder) {
  const TempFolder folder;
  put(folder / "b.txt", "second");
  put(folder / "a/z.txt", "first");
  put(folder / "a/z.bin", "no");
  const auto files = open_text(folder.path());
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(text_of(files[0].bytes()), "first");
  EXPECT_EQ(text_of(open_text(folder / "a/z.bin")[0].bytes()), "no");
}

TEST(TextCorpus, RefusesNothing) {
  const TempFolder folder;
  EXPECT_THAT(data_error([&] { open_text(folder.path()); }),
              HasSubstr("text in .txt or .jsonl files"));
  put(folder / "a.txt", "");
  EXPECT_THAT(data_error([&] { open_text(folder / "a.txt"); }),
              HasSubstr("a.txt: expected text"));
  EXPECT_THAT(data_error([&] { open_text(folder / "none"); }),
              HasSubstr("No such file"));
}

TEST(Wikitext, CountsWordsAndLines) {
  EXPECT_EQ(wikitext_words(bytes_of(" \n = A = \n \n one two \n")), 3 + 2 + 4);
  EXPECT_EQ(wikitext_words(bytes_of("")), 0);
  EXPECT_EQ(wikitext_words(bytes_of("a b")), 2);
}

TEST(Wikitext, FindsArticles) {
  const std::string text =
      " \n = A = \n \n body = x = \n = no = \n = = S = = \n \n = B = \n \n more";
  const auto articles = wikitext_articles(bytes_of(text));
  ASSERT_EQ(articles.size(), 2u);
  EXPECT_TRUE(text_of(articles[0]).starts_with(" \n = A"));
  EXPECT_TRUE(text_of(articles[1]).starts_with(" = B"));
  EXPECT_EQ(articles[0].size() + articles[1].size(), text.size());
  EXPECT_TRUE(wikitext_articles(bytes_of("no title")).empty());
}

TEST(Documents, AreRowsOrArticlesOrFiles) {
  const TempFolder folder;
  const auto documents = [&](const std::string& name, const std::string& text) {
    put(folder / name, text);
    const TextFile file(folder / name);
    std::vector<std::string> all;
    for (const Bytes one : documents_of(file)) all.emplace_back(text_of(one));
    return all;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(documents("a.txt", "one\n\ntwo"), (Texts{"one\n\ntwo"}));
  EXPECT_EQ(documents("a.jsonl", "{\"text\": \"one\"}\n\n{\"text\": \"two\\n\"}\n"),
            (Texts{"one\n", "two\n"}));
  EXPECT_EQ(documents("w.txt", " \n = A = \n \n a \n \n = B = \n \n b"),
            (Texts{" \n = A = \n \n a \n \n", " = B = \n \n b"}));
}

TEST(Wikitext, HasTheKnownSize) {
  const TempFolder scratch;
  const std::string folder = real_data("wikitext-2", scratch);
  LAGWISE_NEEDS_DATA(folder, "wikitext-2");
  const TextFile train = open_wikitext(folder, "train");
  EXPECT_EQ(train.bytes().size(), 10797148u);
  EXPECT_EQ(wikitext_words(train.bytes()), 2088628);
  EXPECT_EQ(wikitext_words(open_wikitext(folder, "valid").bytes()), 217646);
  EXPECT_EQ(wikitext_articles(open_wikitext(folder, "valid").bytes()).size(), 60u);
}

}  // namespace
}  // namespace lagwise::data
