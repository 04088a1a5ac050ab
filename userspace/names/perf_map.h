/* perf maps: names of code that a just-in-time compiler has made. It writes them for perf into
 * /tmp/perf-PID.map, one line for each function:
 *
 *     START SIZE name             (hexadecimal; tools/perf/Documentation/jit-interface.txt)
 *
 * The file is the target's: its size, its lines and its owner are checked.
 */
#ifndef RLS_PERF_MAP_H
#define RLS_PERF_MAP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RLS_PERF_MAP_BYTES_MAX (32U << 20) /* what a file has beyond is not read */

struct rls_perf_map;

/* Takes over text (of length bytes and a NUL behind them; modified). What reads as no line is
 * left out. 0 or -ENOMEM (text is freed either way at last). */
int rls_perf_map_parse(char *text, size_t length, struct rls_perf_map **out);

/* The process's, where it has one. 0; -ENOENT: none that is its own; -errno. */
int rls_perf_map_read(pid_t pid, struct rls_perf_map **out);
void rls_perf_map_free(struct rls_perf_map *map);

/* The name of the code at address and where it begins: the last line's that holds it, since
 * later code takes the place of earlier. NULL: of none. Good as long as the map. */
const char *rls_perf_map_find(const struct rls_perf_map *map, uint64_t address, uint64_t *start);

/* What was read, in bytes. */
size_t rls_perf_map_bytes(const struct rls_perf_map *map);

#endif
