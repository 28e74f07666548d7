#include "lagwise/dist/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

namespace lagwise::dist {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

World world_of(const Variables& variables) {
  return read_world([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

std::string refused(const Variables& variables) {
  try {
    world_of(variables);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "(nothing was refused)";
}

const Variables kFromTorchrun = {{"RANK", "3"},
                                 {"WORLD_SIZE", "4"},
                                 {"LOCAL_RANK", "1"},
                                 {"MASTER_ADDR", "alpha"},
                                 {"MASTER_PORT", "29501"}};
const Variables kFromSlurm = {{"SLURM_PROCID", "2"},
                              {"SLURM_NTASKS", "6"},
                              {"SLURM_JOB_ID", "41007"},
                              {"SLURM_JOB_NODELIST", "gnode[10,20-22],login1"}};

TEST(World, IsAloneWhereNobodyStartedIt) {
  const World world = world_of({});
  EXPECT_TRUE(world.alone());
  EXPECT_EQ(world.rank, 0);
  EXPECT_EQ(world.started_by, "");
  // The shell of an allocation has these, and is no task of it.
  EXPECT_TRUE(world_of({{"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "7"}}).alone());
}

TEST(World, ReadsTorchrun) {
  const World world = world_of(kFromTorchrun);
  EXPECT_EQ(world.rank, 3);
  EXPECT_EQ(world.size, 4);
  EXPECT_EQ(world.address, "alpha");
  EXPECT_EQ(world.port, 29501);
  EXPECT_EQ(world.started_by, "torchrun");
  Variables elastic = kFromTorchrun;
  elastic["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  elastic["TORCHELASTIC_RUN_ID"] = "night";
  elastic["TORCHELASTIC_RESTART_COUNT"] = "2";
  EXPECT_EQ(world_of(elastic).port, 29502);  // torchrun's store has the other
  EXPECT_EQ(world_of(elastic).job, "night/2");
  elastic["MASTER_PORT"] = "65535";
  EXPECT_EQ(world_of(elastic).port, 65534);
  elastic["LAGWISE_JOB"] = "7-0";  // `lagwise launch` inside of it
  EXPECT_EQ(world_of(elastic).port, 65535);
}

TEST(World, ReadsSlurm) {
  const World world = world_of(kFromSlurm);
  EXPECT_EQ(world.rank, 2);
  EXPECT_EQ(world.size, 6);
  EXPECT_EQ(world.address, "gnode10");
  EXPECT_EQ(world.port, 29507);
  EXPECT_EQ(world.started_by, "SLURM");
  Variables scripted = kFromSlurm;  // as many sbatch scripts set them
  scripted["MASTER_ADDR"] = "10.0.0.1", scripted["MASTER_PORT"] = "1234";
  EXPECT_EQ(world_of(scripted).address, "10.0.0.1");
  EXPECT_EQ(world_of(scripted).port, 1234);
}

TEST(World, ReadsMpi) {
  const World open = world_of({{"OMPI_COMM_WORLD_RANK", "1"},
                               {"OMPI_COMM_WORLD_SIZE", "2"},
                               {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_EQ(open.rank, 1);
  EXPECT_EQ(open.address, "127.0.0.1");
  EXPECT_EQ(open.started_by, "Open MPI");
  const World pmi =
      world_of({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MASTER_ADDR", "alpha"}});
  EXPECT_EQ(pmi.size, 2);
  EXPECT_EQ(pmi.address, "alpha");
  EXPECT_THAT(refused({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}),
              HasSubstr("MASTER_ADDR: expected the host of rank 0"));
}

TEST(World, TakesAnEmptyVariableForOneThatIsNotSet) {
  Variables scripted = kFromSlurm;
  scripted["MASTER_ADDR"] = scripted["MASTER_PORT"] = "";
  scripted["SLURM_STEP_NODELIST"] = "";
  EXPECT_EQ(world_of(scripted).address, "gnode10");
  EXPECT_EQ(world_of(scripted).port, 29507);
  EXPECT_THAT(refused({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MASTER_ADDR", ""}}),
              HasSubstr("MASTER_ADDR: expected the host of rank 0"));
}

TEST(World, TorchrunInsideOfSlurmIsTorchrun) {
  Variables both = kFromTorchrun;
  both.insert(kFromSlurm.begin(), kFromSlurm.end());
  EXPECT_EQ(world_of(both).started_by, "torchrun");
  EXPECT_EQ(world_of(both).rank, 3);
}

TEST(World, RefusesHalfOfTheVariablesByName) {
  for (const char* missing : {"WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT"}) {
    Variables half = kFromTorchrun;
    half.erase(missing);
    EXPECT_THAT(refused(half), HasSubstr(missing)) << missing;
  }
  for (const char* missing : {"SLURM_NTASKS", "SLURM_JOB_NODELIST"}) {
    Variables half = kFromSlurm;
    half.erase(missing);
    EXPECT_THAT(refused(half), HasSubstr(missing)) << missing;
  }
  EXPECT_THAT(refused({{"PMI_RANK", "0"}}), HasSubstr("PMI_SIZE"));
}

TEST(World, RefusesTwoStartersThatDiffer) {
  Variables both = kFromSlurm;
  both["OMPI_COMM_WORLD_RANK"] = "1", both["OMPI_COMM_WORLD_SIZE"] = "6";
  EXPECT_THAT(refused(both),
              AllOf(HasSubstr("SLURM_PROCID"), HasSubstr("OMPI_COMM_WORLD_RANK")));
  both["OMPI_COMM_WORLD_RANK"] = "2";
  EXPECT_EQ(world_of(both).started_by, "SLURM");
}

TEST(World, RefusesNumbersThatAreNone) {
  Variables odd = kFromTorchrun;
  odd["RANK"] = "4";
  EXPECT_THAT(refused(odd), HasSubstr("RANK: expected a whole number from 0 to 3"));
  odd = kFromTorchrun, odd["WORLD_SIZE"] = "four";
  EXPECT_THAT(refused(odd), HasSubstr("WORLD_SIZE"));
  odd = kFromTorchrun, odd["MASTER_PORT"] = "70000";
  EXPECT_THAT(refused(odd), HasSubstr("MASTER_PORT"));
}

TEST(FirstHost, FollowsTheGrammarOfNodeLists) {
  EXPECT_EQ(first_host("alpha"), "alpha");
  EXPECT_EQ(first_host("alpha,beta"), "alpha");
  EXPECT_EQ(first_host("gnode[10,20]"), "gnode10");
  EXPECT_EQ(first_host("gnode[008-012,20],x"), "gnode008");
  EXPECT_EQ(first_host("rack[2-3]node[07]-ib,x"), "rack2node07-ib");
  EXPECT_THROW(first_host("gnode[10,20"), std::invalid_argument);
  EXPECT_THROW(first_host(""), std::invalid_argument);
}

}  // namespace
}  // namespace lagwise::dist
