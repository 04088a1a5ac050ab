/* Presenter: everything that the monitor shows, behind four calls.
 *
 *     rls_presenter_open ── publish(snapshot) every interval ── reload on SIGHUP ── free
 *                              │
 *                   exposition ┴▶ page store ─▶ server (a thread of its own)
 *                              └▶ text file
 *
 * All calls are one thread's.
 */
#ifndef RLS_PRESENTER_H
#define RLS_PRESENTER_H

#include <stdint.h>

#include "userspace/metrics/monitor_config.h"
#include "userspace/monitor/snapshot.h"

struct rls_presenter;

/* config_path: NULL, or a file of settings; `given`, from the command line, wins over it and is
 * copied. 0, or -errno, said on stderr. */
int rls_presenter_open(const char *config_path, const struct rls_monitor_config *given,
		       struct rls_presenter **out);
/* Stops serving at once, and removes the text file: nothing is there to read but old figures. */
void rls_presenter_free(struct rls_presenter *presenter);

/* How often rls_presenter_publish is to be called; a reload may change it. */
uint64_t rls_presenter_interval_ns(const struct rls_presenter *presenter);

/* What file and command line say together, until the next reload. */
const struct rls_monitor_config *rls_presenter_config(const struct rls_presenter *presenter);

/* Makes the snapshot what is shown. 0 or -ENOMEM: the old page stays. A text file that cannot be
 * written is said once, and tried again with each page. */
int rls_presenter_publish(struct rls_presenter *presenter, const struct rls_snapshot *snapshot);

/* Reads file, certificate and accounts again. Counters continue. On any error everything stays as it
 * was: -errno, reported on stderr. Roles stay as they were at the start; a warning says if they differ. */
int rls_presenter_reload(struct rls_presenter *presenter);

/* Where the metrics are, as "http://127.0.0.1:9435/metrics"; "" when nothing listens. */
#define RLS_PRESENTER_URL_BYTES 128
const char *rls_presenter_url(const struct rls_presenter *presenter,
			      char buffer[static RLS_PRESENTER_URL_BYTES]);

#endif
