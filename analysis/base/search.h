/* Binary search in what is sorted. */
#ifndef RLS_SEARCH_H
#define RLS_SEARCH_H

#include <stddef.h>

/* The number of the first of count elements for which the condition does not hold, an expression of the
 * number `index`; count when it holds for all. It holds for all before that one, and for none behind. */
#define rls_first_not(count, index, ...)                                                           \
	({                                                                                         \
		size_t low_ = 0, high_ = (count);                                                  \
		while (low_ < high_) {                                                             \
			size_t index = low_ + (high_ - low_) / 2;                                  \
			if (__VA_ARGS__)                                                           \
				low_ = index + 1;                                                  \
			else                                                                       \
				high_ = index;                                                     \
		}                                                                                  \
		low_;                                                                              \
	})

#endif
