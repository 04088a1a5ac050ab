/* Exposition: a snapshot as a page in Prometheus' text format, version 0.0.4.
 *
 *     snapshot ──label set──▶ folds (series, bounded) ──families──▶ text
 *
 * The families' names and labels are a contract; families.c has them all, rlscope-bpf-monitor(1)
 * says what they mean. Seconds are exact decimals of nanoseconds.
 */
#ifndef RLS_EXPOSITION_H
#define RLS_EXPOSITION_H

#include <stdint.h>
#include <stdio.h>

#include "userspace/metrics/families.h"
#include "userspace/monitor/snapshot.h"

/* A page has no more series of jobs than so many: a job that would go beyond, with those that
 * came before it, is left out and counted in rlscope_jobs_omitted. */
#define RLS_EXPOSITION_SERIES_MAX 50000

/* What stays between pages: which names have series. One thread at a time. */
struct rls_exposition;

/* 0 or -ENOMEM. */
int rls_exposition_new(struct rls_exposition **out);
void rls_exposition_free(struct rls_exposition *exposition);

/* 0, -ENOMEM, or -EIO when out has failed. */
int rls_exposition_write(struct rls_exposition *exposition, const struct rls_snapshot *snapshot,
			 const struct rls_exposition_outlets *outlets, FILE *out);

#endif
