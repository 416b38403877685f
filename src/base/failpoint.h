/* Points at which a test kills the program: PIPETUNE_FAILPOINT=NAME[:N] ends it by SIGKILL at the Nth (first) pass;
 * with PIPETUNE_FAILPOINT_FEW=FILE only the first three processes that come there with this file.
 * With PIPETUNE_STORY=FILE each pass is told there, by its name on a line.
 * Compiled to nothing in the shipped build. */
#ifndef BASE_FAILPOINT_H
#define BASE_FAILPOINT_H

#ifdef PIPETUNE_FAILPOINTS
void failpoint(const char *name);
#else
#define failpoint(name) ((void)0)
#endif

#endif
