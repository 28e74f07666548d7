/* A trained model without torch: open a file that `lagwise export` wrote, feed it
 * tokens, read logits or let it draw. Plain C; no exception leaves, nothing is printed.
 *
 *     char why[256];
 *     lagwise_model* model = lagwise_open("song.lagwise", why, sizeof why);
 *     lagwise_state* state = lagwise_start(model);
 *     lagwise_prefill(model, state, prompt, count);
 *     for (;;) {
 *       int64_t token = lagwise_draw(model, state, &sampling);
 *       if (token < 0 || lagwise_step(model, state, token)) break;
 *     }
 *
 * A model is read only: any number of threads may use one model, each with states of
 * its own. A state is a block of memory of a known, constant size.
 */
#ifndef LAGWISE_RUNTIME_LAGWISE_H
#define LAGWISE_RUNTIME_LAGWISE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lagwise_model lagwise_model;
typedef struct lagwise_state lagwise_state;

/* How the next token is drawn. Zero-initialised it is invalid: begin from
 * lagwise_sampling_default(). */
typedef struct lagwise_sampling {
  double temperature;        /* 0: the most likely token */
  int64_t top_k;             /* 0: all */
  double top_p;              /* 1: all */
  double min_p;              /* 0: all; else only p >= min_p times the largest p */
  double repetition_penalty; /* 1: none; divides logits > 0 of tokens drawn or fed
                                recently, multiplies those < 0 */
  int64_t repetition_window; /* how many tokens back that looks */
  uint64_t seed;
  int64_t sample; /* number of the sample: other numbers, other chance */
} lagwise_sampling;

/* --- models --------------------------------------------------------------------- */

/* Maps the file. NULL on failure, with one line in `why` (may be NULL). */
lagwise_model* lagwise_open(const char* file, char* why, size_t why_size);
/* The same from memory, which must outlive the model. */
lagwise_model* lagwise_open_memory(const void* bytes, size_t size, char* why,
                                   size_t why_size);
void lagwise_close(lagwise_model* model);

int64_t lagwise_vocabulary(const lagwise_model* model);
/* What the tokens stand for, as JSON text, as the export wrote it; "" where unknown. */
const char* lagwise_words(const lagwise_model* model);
/* Threads that share a product, 1 at first. */
int lagwise_set_threads(lagwise_model* model, int threads);

/* --- states --------------------------------------------------------------------- */

lagwise_state* lagwise_start(const lagwise_model* model); /* before the first token */
lagwise_state* lagwise_fork(const lagwise_state* state);  /* a copy */
void lagwise_end(lagwise_state* state);
size_t lagwise_state_bytes(const lagwise_model* model);
int64_t lagwise_position(const lagwise_state* state); /* tokens taken */
/* To and from a file. 0, or another number with one line in `why`. A state fits only
 * the model it was made with. */
int lagwise_save(const lagwise_model* model, const lagwise_state* state,
                 const char* file, char* why, size_t why_size);
lagwise_state* lagwise_load(const lagwise_model* model, const char* file, char* why,
                            size_t why_size);

/* --- tokens --------------------------------------------------------------------- */

/* Each takes tokens and leaves the logits after the last; 0, or another number where a
 * token is not in the vocabulary (nothing has changed then). */
int lagwise_prefill(const lagwise_model* model, lagwise_state* state,
                    const int64_t* tokens, size_t count);
int lagwise_step(const lagwise_model* model, lagwise_state* state, int64_t token);
/* One token of each of several states in one pass over the weights. */
int lagwise_step_many(const lagwise_model* model, lagwise_state* const* states,
                      const int64_t* tokens, size_t count);

/* The logits after the last token, `vocabulary` of them; valid until the state changes.
 * NULL before the first token. */
const float* lagwise_logits(const lagwise_state* state);

lagwise_sampling lagwise_sampling_default(void);
/* Draws the next token from the logits, a pure function of them, of `sampling` and of
 * the position; it does not take it. -1 before the first token, or where `sampling` is
 * out of range. */
int64_t lagwise_draw(const lagwise_model* model, const lagwise_state* state,
                     const lagwise_sampling* sampling);

#ifdef __cplusplus
}
#endif

#endif
