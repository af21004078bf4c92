/*
 * statistics.h: whether two groups of runs differ, and by how much: an exact permutation test, the Hodges–Lehmann shift with its interval,
 * Student's interval of the difference of means, and the smallest change that would be seen. The unit is the run: steps of one run are not
 * independent of each other. Pure functions of numbers.
 */
#ifndef DIFF_STATISTICS_H
#define DIFF_STATISTICS_H

#include "base/mem.h"

/* With this many runs on each side a change can be detected at the level of 5 %. */
#define RUNS_LEAST 4
/* The probability to call runs of the same job different. */
#define STAT_LEVEL 0.05
#define RANDOM_SEED 0x9e3779b97f4a7c15u

struct shift {
	double estimate, low, high; /* 95 % interval; NaN if a side has only one run */
};

double stat_mean(const double *x, size_t n);
/* Two-sided probability of a difference of means at least this large, if the runs were shuffled. Exact up to 100,000
 * permutations, else from 20,000 random ones. 1 when a side is empty. The means are of clipped values (stat_clip), so
 * that one cold run does not hide a change of all others. */
double stat_permutation(const double *a, size_t n, const double *b, size_t m);
/* The difference of the means, b - a. The interval holds the true one in 95 % of the cases, also for skewed noise. */
struct shift stat_means(const double *a, size_t n, const double *b, size_t m);
/* The same with a wider interval, whose lower end lies above the true difference in less than 1 % of the cases. */
struct shift stat_means_surely(const double *a, size_t n, const double *b, size_t m);
/* The median of all differences b - a; false if memory runs out. */
bool stat_hodges_lehmann(struct mem *mem, const double *a, size_t n, const double *b, size_t m,
			 struct shift *out) OW_MUST_CHECK;
/* The change that the permutation test detects in 4 of 5 cases (detectable.c); NaN with fewer than RUNS_LEAST runs on a
 * side. */
double stat_detectable(const double *a, size_t n, const double *b, size_t m);
/* Runs needed on each side to detect `change` (detectable.c); 0 when unknown. */
size_t stat_runs_needed(const double *a, size_t n, const double *b, size_t m, double change);
/* Converts probabilities to false discovery rates (Benjamini and Hochberg); false if memory runs out. */
bool stat_adjust(struct mem *mem, double *p, size_t n) OW_MUST_CHECK;
double student_quantile(double p, double degrees);

/* The variance of a run, the same on both sides; 0 with fewer than three runs. */
double stat_variance(const double *a, size_t n, const double *b, size_t m);
/* The number of ways to divide n + m runs into sides of n and m. */
double stat_ways(size_t n, size_t m);
/* Moves values that lie more than three robust deviations from the median to that distance. The limits do not depend on
 * the side of a value, so a permutation test of clipped values is exact. `sorted` has room for n values. */
void stat_clip(double *x, double *sorted, size_t n);
/* A number from 0 to below - 1; the same state gives the same numbers. */
size_t stat_random(uint64_t *state, size_t below);

#endif
