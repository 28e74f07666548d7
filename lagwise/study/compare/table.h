#pragma once

#include <map>
#include <string>
#include <vector>

#include "lagwise/study/run_files.h"
#include "lagwise/study/run_summary.h"

namespace lagwise {

/// A figure over the seeds of a cell.
struct Spread {
  double mean = kUnknown;
  double deviation = kUnknown;  ///< of the sample; of one seed there is none
  int64_t count = 0;
};

/// Mean and deviation of the numbers that are known.
Spread spread_of(const std::vector<double>& values);

/// One row of a comparison: an encoding with an attention on a recipe, over its seeds.
/// Figures come from the seeds that are trained and judged.
struct CompareRow {
  std::string recipe, encoding, attention;
  std::string past = "0";         ///< train.past
  std::string geometry;           ///< RunSummary::geometry
  std::string twin_key;           ///< study/twins.h; empty: no seed has begun
  std::vector<std::string> runs;  ///< folders, where the user named them
  double lr = kUnknown;
  int64_t steps = 0;
  int64_t done = 0, asked = 0;  ///< seeds
  std::string metric;
  Spread value;
  double guess = kUnknown;  ///< what a blind guess gives
  int64_t trained = 0;
  struct Length {
    int64_t tokens = 0;
    Spread loss = {}, restart = {}, value = {};
    Spread twin = {};  ///< the restart line of the twin; unknown: there is none
    /// Each seed's, by its number: loss and restart line.
    struct OfSeed {
      double loss = kUnknown, restart = kUnknown;
    };
    std::map<uint64_t, OfSeed> seeds = {};
  };
  std::vector<Length> lengths;
  Spread train_seconds;
  Spread train_speed, decode_speed;  ///< tokens per second
  int64_t peak_bytes = 0;            ///< the most of any seed
  int64_t parameters = 0;
  std::string state;   ///< "done", or why not: "1 of 3 seeds", "not served: ..."
  std::string remark;  ///< about a row that is done
};

/// The row of some runs of one cell. `asked`: how many seeds there should be.
CompareRow row_of(const std::string& recipe, const std::vector<RunSummary>& runs,
                  int64_t asked);

/// Runs that differ in nothing but their seed, and were judged on the same, share a
/// row; rows in the order of runs. A run with recipe and seed of an earlier one is no
/// second sample, but a copy or a repetition: it has a row of its own, with that
/// remark.
std::vector<CompareRow> rows_of(const std::vector<RunSummary>& runs);

/// Fills in the restart line of each row's twin, where it is among the rows: of several
/// the lowest.
void set_twins(std::vector<CompareRow>& rows);

/// Whether a longer past is used, a line for each row that has one: its loss at the
/// longest length less the lower of its own restart line and its twin's, paired by
/// seed, with the 95 % interval of the mean over seeds.
std::vector<std::string> gain_lines(const std::vector<CompareRow>& rows);

/// Which encodings saw the axes of a grid, and which its cells in a line; nothing where
/// there is no grid.
std::vector<std::string> geometry_lines(const std::vector<CompareRow>& rows);

/// Rows and what is to be said about all of them, in lines.
struct CompareTable {
  std::vector<CompareRow> rows;
  std::vector<std::string> notes;
};

std::string table_text(const CompareTable& table);
std::string table_markdown(const CompareTable& table);

/// What each row cost and what came of it, for runs of any recipes: parameters, steps,
/// minutes, memory, the metric by its name, and what a blind guess gives.
std::string outcome_text(const CompareTable& table);
std::string outcome_markdown(const CompareTable& table);

Json table_json(const CompareTable& table);

}  // namespace lagwise
