/* Drawn worlds look as recordings do, and are the same by their seed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/own.h"
#include "core/world.h"

enum { SEEDS = 300 };

static int last(const int *list)
{
    while (list[1])
        list++;
    return *list;
}

static void test_what_memory_does(void **state)
{
    (void)state;
    int out_of_it = 0, slower = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct rng g = rng_seeded(seed);
        struct world w = world_draw(&g);
        double best = world_epoch_s(&w, w.cores[0], last(w.memory), w.batches[0]);
        for (const int *m = w.memory; *m; m++) {
            double s = world_epoch_s(&w, w.cores[0], *m, w.batches[0]);
            out_of_it += isnan(s);
            slower += s > 1.1 * best;
            assert_true(isnan(s) || isnan(best) || s < 15.5 * best);
            assert_true(*m < w.need_gb || fabs(log(s / best)) <= 0.0201);
        }
    }
    assert_true(out_of_it > 100 && slower > 20);
}

static void test_few_cores_often_beat_many_for_small_batches(void **state)
{
    (void)state;
    int beat = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct rng g = rng_seeded(seed);
        struct world w = world_draw(&g);
        w.bend = w.need_gb = 0;
        double few = world_epoch_s(&w, w.cores[0], w.memory[0], w.batches[0]);
        double many = world_epoch_s(&w, last(w.cores), w.memory[0], w.batches[0]);
        assert_true(fabs(log(many / few)) <= log(2) + 1e-9);
        beat += few < many;
        assert_true(w.startup_s >= 5 && w.startup_s <= 900);
    }
    assert_in_range(beat, SEEDS * 6 / 10, SEEDS * 8 / 10);
}

static void test_a_seed_decides_everything(void **state)
{
    (void)state;
    struct world_study a, b;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        world_study(&a, seed);
        world_study(&b, seed);
        assert_memory_equal(a.cells, b.cells, sizeof a.cells);
        assert_true(a.space.n_hot >= 2 && a.space.n_cold >= 2 && a.n_batches >= 3);
        assert_string_equal(world_job(&a, 1).class_key, world_job(&a, a.n_batches + 1).class_key);
        assert_string_not_equal(world_job(&a, 1).class_key, world_job(&a, 2).class_key);
        assert_string_equal(world_job(&a, 1).family_key, world_job(&a, 2).family_key);
    }
    world_study(&b, 21);
    assert_true(memcmp(a.cells, b.cells, sizeof a.cells) != 0);
}

/* A run in the largest memory, without a policy: each step is told. */
static struct sim_stage stage_of(struct world_study *w, struct sim_world *calls)
{
    *calls = world_calls;
    calls->whole_epochs = false;
    calls->dies_s = NULL;
    return (struct sim_stage){ .policy = policy_find("v1"), .world = calls, .ctx = w };
}

static void test_the_first_epoch_is_longer_and_steps_are_noisy(void **state)
{
    (void)state;
    double first = 0, cold = 0, later = 0, alike = 0, square = 0;
    int n = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct world_study w;
        struct sim_world calls;
        struct sim_run r;
        world_study(&w, seed);
        struct sim_stage stage = stage_of(&w, &calls);
        struct sim_job job = world_job(&w, 1);
        job.start.cold = w.space.n_cold - 1;
        double whole = w.cells[0][0][job.start.cold].epoch_s;
        if (isnan(whole))
            continue;
        sim_run_init(&r, &stage, &job, 0);
        r.rng = rng_seeded(seed);
        assert_int_equal(sim_run_launch(&r, NULL), 0);
        double began = 0, before = NAN, took[3] = { 0 };
        for (int epoch = 0; epoch < 3;) {
            int news = sim_run_next(&r, NULL);
            double x = log((r.now_s - began) / whole * WORLD_STEPS) - r.bias;
            if (news != SIM_STARTED)
                took[epoch] += r.now_s - began;
            if (epoch == 2) { /* warm */
                square += x * x;
                alike += isnan(before) ? 0 : x * before;
                before = x;
                n++;
            }
            began = r.now_s;
            epoch += news == SIM_EPOCH;
        }
        first += took[0] / whole;
        later += took[2] / whole;
        cold += w.w.cold;
    }
    assert_true(fabs(first / cold - 1) < 0.02);
    assert_true(first > 1.1 * later);
    double correlation = alike / square;
    if (!(correlation > 0.85 && correlation < 0.95) || !(sqrt(square / n) > 0.01))
        fail_msg("correlation of steps %.3f, deviation %.4f", correlation, sqrt(square / n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_memory_does),
        cmocka_unit_test(test_few_cores_often_beat_many_for_small_batches),
        cmocka_unit_test(test_a_seed_decides_everything),
        cmocka_unit_test(test_the_first_epoch_is_longer_and_steps_are_noisy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
