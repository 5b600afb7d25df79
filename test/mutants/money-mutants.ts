import type { Mutant } from './mutants.ts';

const ledger = 'test/store/money/model-calls.test.ts';
const metering = 'test/models/metering.test.ts';
const budgetPause = 'test/runs/budget-pause.test.ts';

/** Broken variants of the ledger of model calls and of budgets. */
export const moneyMutants: readonly Mutant[] = [
  {
    name: 'a call that never left is summed up',
    invariant: 'the sums of a session are those of its calls that have ended',
    edit: {
      in: 'closeModelCalls',
      find: "if (end.state !== 'void') await addToUsage.post(tx, { id, runId });",
      replace: 'await addToUsage.post(tx, { id, runId });',
    },
    test: { file: ledger, name: 'sums up a session’s calls by model and purpose' },
  },
  {
    name: 'a call that ends twice is summed up twice',
    invariant: 'the sums of a session are those of its calls that have ended',
    edit: {
      in: 'closeModelCalls',
      find: 'if (!open.delete(id) || row === undefined) continue;',
      replace:
        'if (!open.delete(id) || row === undefined) { await addToUsage.post(tx, { id, runId }); continue; }',
    },
    test: { file: ledger, name: 'sums up a session’s calls by model and purpose' },
  },
  {
    name: 'budget without a judge',
    invariant: 'a call is held in a budget only where it has room',
    edit: {
      in: 'reserveBudgets',
      find: '(await holdIfRoom.run(tx, { key, limit, amount })) === 0',
      replace: '(await holdIfRoom.run(tx, { key, limit: limit + 1e6, amount })) === 0',
    },
    test: { file: ledger, name: 'holds a call in all of its budgets or in none' },
  },
  {
    name: 'budget judged in a step of its own',
    invariant: 'a call is judged and held in one statement',
    edit: {
      in: 'reserveBudgets',
      find: '(await holdIfRoom.run(tx, { key, limit, amount })) === 0',
      replace: `await budgetByKey.one(tx, { key }).then(
        async ({ spent, reserved, raisedTo }) =>
          spent + reserved + amount > (raisedTo ?? limit) ||
          (await holdIfRoom.run(tx, { key, limit: Number.MAX_SAFE_INTEGER, amount })) === 0,
      )`,
    },
    needsPostgres: true,
    test: { file: 'test/store/money/budget-race.test.ts', name: 'is never exceeded by runs on 3 workers' },
  },
  {
    name: 'fallback at the first model’s price',
    invariant: 'each try is priced by the model that answered',
    edit: {
      in: 'answerTerms',
      find: 'lookUpPrices(answered)',
      replace: "lookUpPrices(answered === '' ? answered : 'claude-sonnet-5-5')",
    },
    test: { file: metering, name: 'gives every try, also of a fallback, one row' },
  },
  {
    name: 'renamed model for nothing',
    invariant: 'an answer by a name that has no prices costs as much as what was asked',
    edit: { in: 'answerTerms', find: 'isPriced(listed) ? listed : asked.prices', replace: 'listed' },
    also: [
      {
        in: 'chargeOf',
        find: 'costOf(usage, isPriced(answered) ? answered : asked)',
        replace: 'costOf(usage, answered)',
      },
    ],
    test: { file: 'test/models/providers.test.ts', name: 'costs as much as what was asked' },
  },
  {
    name: 'spent budget kills',
    invariant: 'a run whose budget can be raised waits for that',
    edit: {
      in: 'RunRecorder',
      find: 'refused && (await this.#deps.mayWait(refused))',
      replace: 'refused && refused.isHeld && (await this.#deps.mayWait(refused))',
    },
    test: { file: budgetPause, name: 'goes on by itself when it was raised' },
  },
  {
    name: 'new day unknown',
    invariant: 'a run that waits for a day’s budget has that of the next day to try',
    edit: {
      in: 'isWaitExhausted',
      find: 'endsAt === undefined || needs > limit',
      replace: 'endsAt !== limit + needs',
    },
    test: { file: budgetPause, name: 'tries the budget of each new day at midnight' },
  },
  {
    name: 'summary without room kills',
    invariant: 'a run whose summary has no room in a budget waits for that too',
    edit: {
      in: 'RunRecorder',
      find: "event.reason !== 'natural' ? calls.refused() : undefined",
      replace: "event.reason === 'failed' ? calls.refused() : undefined",
    },
    test: { file: budgetPause, name: 'waits with its history whole' },
  },
  {
    name: 'summary out of time a failure of the model',
    invariant: 'a run that only summarises ends within the time of a run, and is told as that',
    edit: {
      in: 'summarise',
      find: "scope.abortReason() === 'timeout'",
      replace: "scope.abortReason() === 'idle'",
    },
    test: { file: 'test/runs/compaction.test.ts', name: 'is summarised within the time of a run' },
  },
  {
    name: 'returned room left to the sweep',
    invariant: 'a run that waits for a reservation starts as soon as it is returned',
    edit: { in: 'CallBook', find: 'if (hasFreed) this.#deps.freedRoom();', replace: '' },
    test: { file: budgetPause, name: 'without waiting for the sweep' },
  },
  {
    name: 'a wait in vain called a way on',
    invariant: 'a budget of 0 promises nobody that paused requests continue',
    edit: { in: 'judgeRaise', find: 'ready.some(isOfThem)', replace: 'waiting.some(isOfThem)' },
    test: { file: 'test/inbound/budget-command.test.ts', name: 'lowers its budget to 0' },
  },
  {
    name: 'a run without room waits unannounced',
    invariant: 'a sender whose run waits for a reservation gets a waiting notice',
    edit: {
      in: 'readUnnotified',
      find: '...(await withoutRoom.all(tx, { before }))',
      replace: '',
    },
    test: { file: 'test/store/items/waiting-notices.test.ts', name: 'room that another call has reserved' },
  },
  {
    name: 'room given twice',
    invariant: 'no more waiting runs go on than their budget has room for',
    edit: { in: 'withRoom', find: 'given.set(key, before + needs);', replace: '' },
    test: { file: 'test/store/waits/budget-waits.test.ts', name: 'no room is given twice' },
  },
  {
    name: 'uncounted answer at its estimate',
    invariant: 'what a provider did not count costs its bound',
    edit: { in: 'endOfAnswer', find: 'if (isUncounted)', replace: 'if (isUncounted && model === "")' },
    test: { file: metering, name: 'charges an answer whose tokens nobody counted' },
  },
  {
    name: 'stopped answer at its maximum',
    invariant: 'a stopped call costs what had arrived of it',
    edit: { in: 'priceEnd', find: 'Math.min(bound, costOf(usage, model.prices))', replace: 'bound' },
    test: { file: ledger, name: 'charges a stopped call for its prompt' },
  },
  {
    name: 'stopped answer beyond its bound',
    invariant: 'a stopped call costs no more than its bound',
    edit: {
      in: 'priceEnd',
      find: 'Math.min(bound, costOf(usage, model.prices))',
      replace: 'costOf(usage, model.prices)',
    },
    test: { file: ledger, name: 'charges a stopped call for its prompt' },
  },
  {
    name: 'miscount believed',
    invariant: 'a count of more tokens than a call can have had is charged at its bound',
    edit: { in: 'isMiscount', find: ' > most.prompt ||', replace: ' > most.prompt * 1e6 ||' },
    test: { file: ledger, name: 'more tokens than the call can have had' },
  },
  {
    name: 'miscount in the context’s size',
    invariant: 'a count that a call can’t have had says nothing about the size of its context',
    edit: { in: 'corrected', find: '...answer, ...held, isUncounted: true', replace: '...held, ...answer' },
    test: { file: 'test/runs/compaction.test.ts', name: 'does not seem too long for a count' },
  },
  {
    name: 'stopped call charged',
    invariant: 'a call that never left costs nothing',
    edit: {
      in: 'metered',
      find: "if (signal.aborted) { await ledger.close(ticket, { state: 'void' });",
      replace: "if (signal.aborted) { await ledger.close(ticket, { state: 'unknown' });",
    },
    test: { file: metering, name: 'closes a call that is stopped before it leaves' },
  },
  {
    name: 'call recorded while its SDK loads',
    invariant: 'a call that was recorded leaves at once',
    edit: { in: 'metered', find: 'provider.ready?.()', replace: 'Promise.resolve()' },
    test: { file: metering, name: 'records no call that is stopped while its provider loads' },
  },
  {
    name: 'refused answer at its bound',
    invariant: 'what a provider has counted costs no more than that',
    edit: { in: 'endOfFailure', find: 'counted ?', replace: 'counted && counted.model === "" ?' },
    test: { file: metering, name: 'charges an answer that was refused' },
  },
  {
    name: 'fallback asked for the answer of another',
    invariant: 'no model is asked for a longer answer than its own longest',
    edit: { in: 'toOpenAiRequest', find: 'model.answerTokens,', replace: '' },
    test: { file: 'test/models/models.test.ts', name: 'fall back across providers' },
  },
  {
    name: 'unknown call released',
    invariant: 'what may have been counted costs its bound',
    edit: {
      in: 'readBounds',
      find: "end.state === 'unknown' && bound === undefined ? [id] : []",
      replace: "end.state === 'unknown' && bound === -1 ? [id] : []",
    },
    test: { file: ledger, name: 'charges every end of a run that broke off' },
  },
  {
    name: 'words of a call taken for an image',
    invariant: 'a budget holds the bytes of whatever a model has written',
    edit: {
      in: 'promptTextOf',
      find: 'JSON.stringify(part)',
      replace: "JSON.stringify(part, (key, value) => (key === 'base64' ? '' : value))",
    },
    test: { file: 'test/models/call-bound.test.ts', name: 'named like one by its bytes' },
  },
  {
    name: 'sub-agent at nobody’s cost',
    invariant: 'what a sub-agent costs is charged to every session above it, once',
    edit: {
      in: 'finishChild',
      find: 'chargeAncestors(tx, child.id, usage.cost)',
      replace: 'chargeAncestors(tx, child.id, 0)',
    },
    test: { file: 'test/store/children/children.test.ts', name: 'charges every session above it' },
  },
  {
    name: 'an SDK that nobody uses is loaded',
    invariant: 'OpenAI’s SDK is loaded with the first request to such a model',
    edit: {
      in: 'createProviderOfKind',
      find: 'return createOpenAiProvider(options);',
      replace: "void import('openai'); return createOpenAiProvider(options);",
    },
    test: { file: 'test/e2e/titles.test.ts', name: 'SDK stays unloaded' },
  },
];
