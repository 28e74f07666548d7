/* Lets a model go on from a prompt, twice from the same place:
 *
 *     play_on song.lagwise 12 7 30        the prompt, in tokens
 */
#include <lagwise/runtime/lagwise.h>
#include <stdio.h>
#include <stdlib.h>

enum { kMostTokens = 1024, kLength = 32 };

static int write_on(const lagwise_model* model, lagwise_state* state, uint64_t seed) {
  lagwise_sampling sampling = lagwise_sampling_default();
  sampling.temperature = 0.9;
  sampling.top_p = 0.95;
  sampling.seed = seed;
  printf("seed %d:", (int)seed);
  for (int i = 0; i < kLength; ++i) {
    const int64_t token = lagwise_draw(model, state, &sampling);
    if (token < 0 || lagwise_step(model, state, token) != 0) return 1;
    printf(" %d", (int)token);
  }
  printf("\n");
  return 0;
}

int main(int count, char** words) {
  char why[256];
  int64_t prompt[kMostTokens];
  size_t tokens = 0;
  if (count < 3) {
    fprintf(stderr, "Usage: play_on FILE TOKEN...\n");
    return 2;
  }
  lagwise_model* model = lagwise_open(words[1], why, sizeof why);
  if (model == NULL) {
    fprintf(stderr, "%s\n", why);
    return 3;
  }
  for (int i = 2; i < count && tokens < kMostTokens; ++i)
    prompt[tokens++] = strtoll(words[i], NULL, 10);

  int failed = 2;
  lagwise_state* state = lagwise_start(model);
  if (lagwise_prefill(model, state, prompt, tokens) == 0) {
    printf("%d tokens read; a state of %d bytes\n", (int)lagwise_position(state),
           (int)lagwise_state_bytes(model));
    lagwise_state* fork = lagwise_fork(state);
    failed = write_on(model, state, 1) || write_on(model, fork, 2);
    lagwise_end(fork);
  } else {
    fprintf(stderr, "a token is not in the vocabulary of %d\n",
            (int)lagwise_vocabulary(model));
  }
  lagwise_end(state);
  lagwise_close(model);
  return failed;
}
