/* Student's t: how many standard errors an interval must reach when the error itself is known of
 * few values only.
 */
#ifndef RLS_STUDENT_H
#define RLS_STUDENT_H

/* t with P(|T| < t) = confidence. */
double rls_student_quantile(double confidence, double freedom);

#endif
