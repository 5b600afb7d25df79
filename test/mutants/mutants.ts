/** Deliberately broken variants of Parley, each with the test that must notice it. */
export type Mutant = {
  readonly name: string;
  /** What the variant breaks. */
  readonly invariant: string;
  readonly edit: Edit;
  /** Further edits, for a variant that takes more than one. */
  readonly also?: readonly Edit[];
  readonly test: { readonly file: string; readonly name: string };
  /** Runs on every `npm test`; the others run with PARLEY_LONG=1. */
  readonly isSample?: boolean;
  /** The test that notices it only runs on PostgreSQL. */
  readonly needsPostgres?: boolean;
};

/**
 * One change of the source: `in` names a top-level declaration of src, channels or plugins; `find` matches exactly
 * once within it, token by token, so layout, comments, trailing commas and the file don't matter. `$NAME` stands for
 * one identifier, `$$NAME` for any run of tokens with balanced brackets; both mean the same text wherever they
 * are repeated, also in `replace`. Keep `find` short and free of names that may change: it must survive a refactor.
 */
export type Edit = { readonly in: string; readonly find: string; readonly replace: string };

const lanes = 'test/store/lanes/lanes.test.ts';
const powerCut = 'test/runs/power-cut.test.ts';
const laneRaces = 'test/store/lanes/lane-races.test.ts';
const tornSteps = 'test/store/torn-steps.test.ts';
const queueModel = 'test/store/lanes/queue-model.test.ts';
const oneCommit = 'test/store/lanes/one-commit.test.ts';
const origins = 'test/server/origins.test.ts';

export const mutants: readonly Mutant[] = [
  {
    name: 'cursor saved before the rows',
    invariant: 'the platform cursor moves in the transaction that stores the events',
    edit: {
      in: 'store',
      find: 'const accepted = await deps.store.write(acceptBatch, { ...input, ...claims });',
      replace: `await deps.store.write(acceptBatch, { ...input, proposals: [] });
    const accepted = await deps.store.write(acceptBatch, { account, epoch, holder, proposals, links, ...claims });`,
    },
    test: { file: 'test/inbound/power-cut.test.ts', name: 'never leaves the cursor ahead of the rows' },
    isSample: true,
  },
  {
    name: 'NUL sent to PostgreSQL',
    invariant: 'what is looked up by a text that can’t be stored isn’t found',
    edit: { in: 'storable', find: 'cleanText(value)', replace: 'value' },
    needsPostgres: true,
    test: {
      file: 'test/store/reads/why/why.test.ts',
      name: 'knows nothing of an id that no database stores',
    },
  },
  {
    name: 'escapes that PostgreSQL refuses sent to it',
    invariant: 'no text from outside makes a statement fail',
    edit: { in: 'cleanEscape', find: "'\\ufffd'", replace: 'written' },
    needsPostgres: true,
    test: {
      file: 'test/store/reads/why/why.test.ts',
      name: 'knows nothing of an id that no database stores',
    },
  },
  {
    name: 'no unique event key',
    invariant: 'a redelivered event is a duplicate, for ever',
    edit: { in: 'acceptOnce', find: "if (before) return { kind: 'duplicate', of: before.of };", replace: '' },
    isSample: true,
    test: { file: lanes, name: 'stores a redelivered event once' },
  },
  {
    name: 'a repeated frame is only called a duplicate',
    invariant: 'a client whose acknowledgement was lost is told what became of its frame',
    edit: { in: 'ackOf', find: 'state: stateOf(acceptance),', replace: 'state: acceptance.kind,' },
    test: { file: 'test/channels/terminal/contract.test.ts', name: 'says again what became of a frame' },
  },
  {
    name: 'account epoch unchecked',
    invariant: 'only the holder of the account lease moves its cursor',
    edit: { in: 'moveCursorAt', find: 'if (isHeld) return;', replace: 'if (isHeld || lease) return;' },
    test: { file: 'test/store/processes/accounts.test.ts', name: 'refuses what a process stores' },
  },
  {
    name: 'transcript and outbox in two transactions',
    invariant: 'an answer and its reply parts are one commit',
    edit: {
      in: 'RunRecorder',
      find: 'parts: answerParts(plan, { target, standing, replyToMode }),',
      replace: 'parts: [],',
    },
    also: [
      {
        in: 'RunRecorder',
        find: 'start(answered.effects); live.next();',
        replace: `start(answered.effects);
    for (const part of answerParts(plan, { target, standing, replyToMode }))
      start(await store.write((await import('../store/lanes/commit-turn.ts')).storeNotice, { ...this.#held, key: message.id, ...part }));
    live.next();`,
      },
      { in: 'storeNotice', find: 'if (lane.runId !== input.runId) return effects;', replace: '' },
    ],
    test: { file: powerCut, name: 'leaves one message, one effect at most and one answer' },
    isSample: true,
  },
  {
    name: 'tool started before its call is on record',
    invariant: 'recovery knows which calls may have had an effect',
    edit: {
      in: 'ToolTurns',
      find: 'await store.write(markToolStarted, { ...this.#held, messageId, callId: call.id });',
      replace: '{}',
    },
    test: { file: powerCut, name: 'leaves one message, one effect at most and one answer' },
  },
  {
    name: 'open calls run again after a crash',
    invariant: 'what may have had an effect is told as unknown, never repeated',
    edit: {
      in: 'prepareKnown',
      find: "const mayRepeat = (tools.get(call.name)?.replay ?? 'never') !== 'never';",
      replace: 'const mayRepeat = tools.has(call.name);',
    },
    test: { file: powerCut, name: 'leaves one message, one effect at most and one answer' },
  },
  {
    name: 'epoch unchecked',
    invariant: 'nothing counts that a worker writes whose lane another holds',
    edit: {
      in: 'lockLaneAt',
      find: 'if (lane && lane.epoch === epoch) return lane;',
      replace: 'if (lane) return lane;',
    },
    test: { file: lanes, name: 'refuses every write of a worker whose lane was claimed by another' },
    isSample: true,
  },
  {
    name: 'lane row unlocked',
    invariant: 'the steps of one lane happen one after the other',
    edit: { in: 'planOf', find: 'query.forUpdate().compile()', replace: 'query.compile()' },
    test: { file: laneRaces, name: 'gives the lane to one of them at a time' },
    needsPostgres: true,
    isSample: true,
  },
  {
    name: 'a lease by the time before the wait',
    invariant: 'one active run per session in the whole system',
    edit: { in: 'withLockTime', find: 'tx.advanceNow?.(lockedAt);', replace: '' },
    test: {
      file: 'test/store/postgres/stuck-transaction.test.ts',
      name: 'leaves the lane to one of those who waited for it, and one try is counted',
    },
    needsPostgres: true,
  },
  {
    name: 'lease ignored by a claim',
    invariant: 'one active run per session in the whole system',
    edit: { in: 'claimBy', find: 'if (lane.leaseUntil > tx.now && !isMine)', replace: 'if (false)' },
    test: { file: laneRaces, name: 'gives the lane to one of them at a time' },
  },
  {
    name: 'take not in one transaction with the transcript',
    invariant: 'leaving the queue and standing in the transcript are one commit',
    edit: { in: 'Connection', find: 'this.post(beginning, []);', replace: '' },
    test: { file: tornSteps, name: 'leaves nothing behind' },
    needsPostgres: true,
  },
  {
    name: 'failed steps not rolled back on SQLite',
    invariant: 'a step happens whole or not at all',
    edit: { in: 'runInSavepoint', find: 'control.undoStep();', replace: '' },
    test: { file: tornSteps, name: 'leaves nothing behind' },
  },
  {
    name: 'finish without looking for steers',
    invariant: 'a message that arrives while the final text is written extends the run',
    edit: { in: 'commitAnswer', find: 'if (chosen.length > 0) {', replace: 'if (chosen.length < 0) {' },
    test: { file: lanes, name: 'takes in a message that arrives while the final text is written' },
  },
  {
    name: 'what was answered ended with the run that went on',
    invariant: 'a message that was answered stays answered, however the run ends that went on after it',
    edit: {
      in: 'commitAnswer',
      find: 'await endAnswered(tx, {',
      replace: 'if (chosen.length === 0) await endAnswered(tx, {',
    },
    test: {
      file: 'test/store/lanes/outcome-table.test.ts',
      name: 'that a run has answered stays answered when the run fails later',
    },
  },
  {
    name: 'lane left resting without a look at the queue',
    invariant: 'close if empty: joins the run that ends or starts the next one, no third case',
    edit: {
      in: 'closeRun',
      find: 'const next = lookAhead(left, tx.now);',
      replace: "const next = { kind: 'idle' } as LaneExit;",
    },
    test: { file: laneRaces, name: 'joins that run or starts the next one' },
  },
  {
    name: 'steer by another person',
    invariant: 'a steer joins only a run of the same authority',
    edit: { in: 'chooseSteers', find: 'row.authority === run.authority &&', replace: '' },
    test: { file: queueModel, name: 'does what its reference model does' },
  },
  {
    name: 'authority ignored in collect',
    invariant: "nobody's text runs with another's rights",
    edit: {
      in: 'isAlike',
      find: 'return row.authority === head.authority && isSameTarget(',
      replace: 'return isSameTarget(',
    },
    test: { file: lanes, name: 'collects what waits after a quiet window into one run, apart by authority' },
  },
  {
    name: 'newest first',
    invariant: 'arrival order per session, whatever the modes',
    edit: { in: 'waitingIn', find: ".orderBy('seq')", replace: ".orderBy('seq', 'desc')" },
    test: { file: queueModel, name: 'does what its reference model does' },
  },
  {
    name: 'overflow in silence',
    invariant: 'what the cap pushes out is told',
    edit: { in: 'enforceCap', find: 'await tell(tx.texts.queueSummarised, oldest.route);', replace: '' },
    test: { file: lanes, name: 'keeps the lane under its cap and says what gave way' },
  },
  {
    name: 'drain that depends on how the run ended',
    invariant: 'a run that is aborted leaves what waits behind it to the next one',
    edit: {
      in: 'closeRun',
      find: 'await endTaken(tx, runId, { outcome, outcomeReason });',
      replace: `{ await endTaken(tx, runId, { outcome, outcomeReason });
    await tx.db.updateTable('inbox').set({ state: 'ended', outcome, outcomeReason })
      .where('laneKey', '=', lane.key).where('state', '=', 'waiting').execute(); }`,
    },
    test: { file: queueModel, name: 'does what its reference model does' },
  },
  {
    name: 'group context shown twice',
    invariant: 'what a group said is shown to one run, never again',
    edit: { in: 'showContext', find: '.set({ shownInRun: runId })', replace: '.set({ laneKey })' },
    test: { file: lanes, name: 'shows unmentioned group messages once' },
  },
  {
    name: 'part found in sending repeated blindly',
    invariant: 'a send whose result is unknown is never repeated by guess',
    edit: {
      in: 'stepFor',
      find: "return head.resendUnknown ? 'send' : 'give-up';",
      replace: "return 'send';",
    },
    test: { file: lanes, name: 'calls a part that was found in sending unknown' },
  },
  {
    name: 'calls that had begun taken for calls that had not',
    invariant: 'a part is sent again after a kill only if its call had certainly not begun',
    edit: { in: 'requeueUnsent', find: '.filter((key) => !known.has(key))', replace: '' },
    test: { file: oneCommit, name: 'a part whose call' },
  },
  {
    name: 'parts of the dead taken from who has them by now',
    invariant: 'of two processes that find the same one dead, one takes its parts back',
    edit: { in: 'lockDeliveries', find: ".where('deliveryHolder', 'in', ids)", replace: '' },
    also: [{ in: 'requeueUnsent', find: '.filter((one) => one.holder === holder)', replace: '' }],
    needsPostgres: true,
    test: { file: 'test/store/processes/dead-processes.test.ts', name: 'is buried twice at once' },
  },
  {
    name: 'one lane claimed for every slot',
    invariant: 'a commit claims no more lanes than the process has slots',
    edit: { in: 'claimDue', find: 'newRunIds[runs.length]', replace: 'newRunIds[0] && crypto.randomUUID()' },
    test: { file: oneCommit, name: 'claims the lanes it makes due' },
  },
  {
    name: 'delivery epoch unchecked',
    invariant: 'only the holder of a conversation says what became of its part',
    edit: { in: 'recordDelivery', find: 'if (row?.deliveryEpoch !== input.epoch) {', replace: 'if (!row) {' },
    test: { file: lanes, name: 'calls a part that was found in sending unknown' },
  },
  {
    name: 'silent token prefix shown while streaming',
    invariant: 'no prefix of a silent token is ever shown',
    edit: {
      in: 'pastHeads',
      find: "if (mayBecomeHead.some((form) => form.test(current))) return '';",
      replace: '',
    },
    test: {
      file: 'test/replies/stream-guard.test.ts',
      name: 'shows only beginnings of what is sent in the end',
    },
  },
  {
    name: 'access by user name',
    invariant: 'access is decided by immutable ids',
    edit: {
      in: 'isOwnerBy',
      find: `return names(policy.owners, route.channel, sender.id) || (`,
      replace: `if (names(policy.owners, route.channel, (sender as unknown as { name: typeof sender.id }).name)) return true;
  return names(policy.owners, route.channel, sender.id) || (`,
    },
    test: { file: 'test/inbound/authorise.test.ts', name: 'cannot even see a name' },
  },
  {
    name: 'results in completion order',
    invariant: 'results enter the transcript in the order of their calls',
    edit: {
      in: 'emitResults',
      find: 'for (const each of prepared) { const { call } = each;',
      replace: `const order = [...results.keys()];
  const done = [...prepared].sort((a, b) => order.indexOf(a.call.id) - order.indexOf(b.call.id));
  for (const each of done) {
    const { call } = each;`,
    },
    also: [
      {
        in: 'inSourceOrder',
        find: 'return calls.flatMap(({ id }) => results.get(id) ?? []);',
        replace: 'return [...results.values()].slice(0, calls.length);',
      },
    ],
    test: {
      file: 'test/agent/tool-batch.test.ts',
      name: 'puts results into the transcript in source order while end events come in completion order',
    },
  },
  {
    name: 'path checked, then opened by name',
    invariant: 'nobody swaps a folder for a link between a check and its use',
    edit: {
      in: 'pathAt',
      find: 'pathOf($FOLDER)',
      replace: "process.getBuiltinModule('node:fs').readlinkSync(pathOf($FOLDER))",
    },
    test: { file: 'test/plugins/files/workspace-race.test.ts', name: 'outside' },
  },
  {
    name: 'links followed by the file tools',
    invariant: 'a link in the workspace leads nowhere',
    edit: { in: 'openEntry', find: 'O_PATH | flags.O_NOFOLLOW);', replace: 'O_PATH);' },
    also: [
      { in: 'openEntry', find: 'await checkInside(entry, root); return entry;', replace: 'return entry;' },
    ],
    test: { file: 'test/plugins/files/workspace-paths.test.ts', name: 'reach nothing outside' },
  },
  {
    name: 'Host check dropped',
    invariant: 'the page answers to its own names only (DNS rebinding)',
    edit: {
      in: 'judgeHead',
      find: 'if (host === undefined || !origins.hasHost(host))',
      replace: 'if (host === undefined)',
    },
    test: { file: origins, name: 'answers no other spelling of its address' },
  },
  {
    name: 'Origin check dropped',
    invariant: 'no page of another origin acts for the person who is signed in',
    edit: {
      in: 'judgeHead',
      find: 'if (origin !== undefined && !origins.isSameOrigin(origin, host))',
      replace: 'if (false)',
    },
    test: { file: origins, name: 'gives other origins nothing' },
  },
  {
    name: 'logs written as they come',
    invariant: 'no secret passes the sink of the log',
    edit: { in: 'createLogger', find: 'redactor.redact(stripLogLine(line))', replace: 'stripLogLine(line)' },
    test: { file: 'test/logging/logger.test.ts', name: '' },
  },
  {
    name: 'platform words kept with the key in them',
    invariant: 'secrets never reach the store',
    edit: { in: 'wordsOf', find: "text.replaceAll(key, '[secret]')", replace: 'text' },
    test: { file: 'test/threats/secrets.test.ts', name: 'shows no secret in logs, store' },
  },
  {
    name: 'tools of a guest read any session',
    invariant: 'a tool sees its own session',
    edit: {
      in: 'createSessionsHistoryTool',
      find: "if (sessionId !== run.sessionId && run.authority !== 'owner')",
      replace: 'if (false)',
    },
    test: { file: 'test/threats/foreign-sessions.test.ts', name: 'show nothing of another session' },
  },
  {
    name: 'forged wake believed',
    invariant: 'a wake makes Parley look and nothing more',
    edit: {
      in: 'claimBy',
      find: 'const choice = chooseBatch(waiting, lane.mode as QueueMode, tx.now);',
      replace: `const route = { channel: 'telegram', account: '7000001', conversation: '501' };
    const content = { text: 'forged', prompt: 'forged', sender: { id: '', name: '' }, attachments: [] };
    const forged = { id: 'forged', target: route, authority: 'owner', sourceKey: null, content };
    const choice = waiting.length > 0
      ? chooseBatch(waiting, lane.mode as QueueMode, tx.now)
      : ({ kind: 'run', rows: [forged] } as never);`,
    },
    test: { file: 'test/threats/redis.test.ts', name: 'starts no run' },
  },
  {
    name: 'answer said although it was stopped',
    invariant: 'what a person stopped before it was on record is not said',
    edit: {
      in: 'commitAnswer',
      find: 'const { cancelReason } = run;',
      replace: 'const cancelReason = undefined;',
    },
    test: { file: queueModel, name: 'does what its reference model does' },
  },
  {
    name: 'flood told at each refill',
    invariant: 'a flooding sender is told once',
    edit: {
      in: 'createRateLimit',
      find: 'const wasTold = bucket.wasTold && tokens < perMinute / 2;',
      replace: 'const wasTold = bucket.wasTold && tokens < 1;',
    },
    test: { file: 'test/inbound/limits.test.ts', name: 'says so once per flood' },
  },
];
