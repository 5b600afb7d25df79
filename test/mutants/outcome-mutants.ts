import type { Mutant } from './mutants.ts';

/** Of what became of a message, and of what must not keep the next one from an answer. */
export const outcomeMutants: readonly Mutant[] = [
  {
    name: 'an answer quotes whatever the model names',
    invariant: 'an answer quotes only a message of its conversation that the model has seen',
    edits: [
      {
        in: 'planAnswer',
        find: 'const reply = isForeign ? $$ANY : judged;',
        replace: 'const reply = judged;',
      },
    ],
    test: { file: 'test/runs/plan-answer.test.ts', name: 'quotes a message only if the model has seen it' },
  },
  {
    name: 'arguments of any depth stored',
    invariant: 'what a model writes is bounded before it is stored',
    edits: [
      {
        in: 'boundCall',
        find: 'if (problem !== undefined) return refused(call, problem);',
        replace: '',
      },
    ],
    test: {
      file: 'test/runs/poisoned-history.test.ts',
      name: 'goes on after a call with 5,000 nested brackets',
    },
  },
  {
    name: 'empty answer counted as silent',
    invariant: 'silent is only what the model decided',
    edits: [
      {
        in: 'outcomeOf',
        find: "return { outcome: 'failed', outcomeReason: plan.why };",
        replace: "return { outcome: 'silent', outcomeReason: plan.why };",
      },
    ],
    test: { file: 'test/runs/empty-answer.test.ts', name: 'is empty twice has failed' },
  },
];
