/* A stream that compresses what is written to it. */
#ifndef RLS_GZIP_H
#define RLS_GZIP_H

#include <stdio.h>

/* What is written goes to output in gzip form, whole once the stream is closed with fclose();
 * output stays open and its failures are its own. NULL when out of memory. */
FILE *rls_gzip_open(FILE *output);

#endif
