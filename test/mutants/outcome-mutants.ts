import type { Mutant } from './mutants.ts';

/** Broken variants of message outcomes, and of what must not keep the next message from an answer. */
export const outcomeMutants: readonly Mutant[] = [
  {
    name: 'a lane that fails each time kept to the log',
    invariant: 'a lane that fails ten times in a row is named to the owner and by /readyz',
    edit: { in: 'workWatched', find: 'deps.failures?.failed(lane.laneKey, error);', replace: '' },
    also: [{ in: 'execute', find: 'deps.failures?.failed(laneKey, error);', replace: '' }],
    test: { file: 'test/e2e/failing-lane.test.ts', name: 'tells the owner and says so' },
  },
  {
    name: 'alert of a kind that the version before fails at',
    invariant: 'no alert keeps the version before from telling its owner of others',
    edit: { in: 'storedName', find: 'isNewer ?', replace: 'isNewer && subject === "" ?' },
    test: { file: 'test/store/alerts/alerts.test.ts', name: 'of kinds that 0.2.0 lacks' },
  },
  {
    name: 'owner not told why a group sees ⚠',
    invariant: 'the details of a failure in a group reach the owner',
    edit: { in: 'alertFailedRun', find: 'if (sign === undefined) return;', replace: 'if (sign) return;' },
    test: {
      file: 'test/store/alerts/alerts.test.ts',
      name: 'say why a run failed of which its group sees a reaction only, and how often',
    },
  },
  {
    name: 'given-up run tells its group in words',
    invariant: 'a group sees ⚠ for every failure of a run, and its owner the reason',
    edit: { in: 'noticesOf', find: "chatKind === 'group'", replace: "chatKind === 'dm'" },
    test: {
      file: 'test/store/lanes/lanes.test.ts',
      name: 'gives up a run of a group with ⚠ on its message, or a line where that is refused, and tells the owner',
    },
  },
  {
    name: 'a run timeout reported like any other failure',
    invariant: 'a program learns from the code alone that a run had no more time',
    edit: { in: 'errorCodeOf', find: "reason === runTimeout ? 'run_timeout' : outcome", replace: 'outcome' },
    test: {
      file: 'test/service/agent-service.test.ts',
      name: 'tells who waits how a run has ended, with a code of its own when its time was over',
    },
  },
  {
    name: 'files fetched without a limit',
    invariant: 'one sender’s files take no more than their share of an hour',
    edit: { in: 'fetchWithin', find: '!allowance.hasRoom(sender, stated)', replace: 'false' },
    test: {
      file: 'test/inbound/attachment-fetcher.test.ts',
      name: 'of one sender are fetched up to a limit within an hour',
    },
  },
  {
    name: 'write repeated over an edit',
    invariant: 'a call that is repeated after a crash undoes nothing that came since',
    edit: { in: 'checkUnchanged', find: 'standing.bytes.equals(bytes)', replace: 'true' },
    test: {
      file: 'test/plugins/files/file-tools.test.ts',
      name: 'that is repeated after a crash leaves what a person has made of the file since',
    },
  },
  {
    name: 'files of a stranger left with the network',
    invariant: 'what nobody will fetch is removed where it lies',
    edit: { in: 'dropRequest', find: 'if (kept) await', replace: 'if (!kept && kept) await' },
    test: {
      file: 'test/inbound/questions.test.ts',
      name: 'keeps the files of the one message that is answered once its sender is in',
    },
  },
  {
    name: 'headers of another server sent',
    invariant: 'a server is sent its own secrets only',
    edit: { in: 'hidingVariables', find: 'delete process.env[name]', replace: 'String(name)' },
    test: {
      file: 'test/models/providers.test.ts',
      name: 'sends a server of the API of OpenAI its own headers, and none of the environment',
    },
  },
  {
    name: 'refusal of a model ended by its fallback',
    invariant: 'an alert lasts as long as what it tells of',
    edit: { in: 'createKeyAlerts', find: 'see(ofModel, valuesOf', replace: 'see(provider, valuesOf' },
    test: {
      file: 'test/roles/model-alerts.test.ts',
      name: 'tells the owner once that a provider rejects its key, or one model to it',
    },
  },
  {
    name: 'owner told of another key than the refused one',
    invariant: 'an alert about a key says which one',
    edit: { in: 'labelKey', find: 'key: index + 1', replace: 'key: 1' },
    test: {
      file: 'test/roles/model-alerts.test.ts',
      name: 'tells the owner which of several keys is refused, and whether for itself, its account or an allowance',
    },
  },
  {
    name: 'newest messages cut off a long history',
    invariant: 'a result that is too long loses the oldest messages',
    edit: { in: 'newestOf', find: 'if (room < 0 && lines.length > 0) break;', replace: '' },
    test: { file: 'test/tools/sessions.test.ts', name: 'shows the newest messages of a long history' },
  },
  {
    name: 'file of a parked run removed',
    invariant: 'no file is removed that a message, a run or a part still needs',
    edit: { in: 'findUse', find: "(row.runState ?? 'finished') === 'finished'", replace: 'true' },
    test: {
      file: 'test/inbound/media-retention.test.ts',
      name: 'are removed once they are old, unless something still needs them',
    },
  },
  {
    name: 'an answer quotes whatever the model names',
    invariant: 'an answer quotes only a message of its conversation that the model has seen',
    edit: {
      in: 'planAnswer',
      find: 'const reply = isForeign ? $$ANY : judged;',
      replace: 'const reply = judged;',
    },
    test: { file: 'test/runs/plan-answer.test.ts', name: 'quotes a message only if the model has seen it' },
  },
  {
    name: 'arguments of any depth stored',
    invariant: 'what a model writes is bounded before it is stored',
    edit: { in: 'InputRoom', find: 'if (problem !== undefined) return refused(call, problem);', replace: '' },
    test: {
      file: 'test/runs/poisoned-history.test.ts',
      name: 'goes on after a call with 5,000 nested brackets',
    },
  },
  {
    name: 'empty answer counted as silent',
    invariant: 'silent is only what the model decided',
    edit: {
      in: 'outcomeOf',
      find: "return { outcome: 'failed', outcomeReason: plan.why };",
      replace: "return { outcome: 'silent', outcomeReason: plan.why };",
    },
    test: { file: 'test/runs/empty-answer.test.ts', name: 'is empty twice has failed' },
  },
  {
    name: 'a torn page of the timeline',
    invariant: 'a client that reads on from what it was given misses nothing',
    edit: {
      in: 'readTimeline',
      find: 'page.filter(({ position }) => position < end)',
      replace: 'end < 0 ? [] : page',
    },
    test: { file: 'test/store/reads/timeline.test.ts', name: 'ends before what is stored while it is read' },
  },
  {
    name: 'a conversation read only when something is told of it',
    invariant: 'a page whose event was lost shows what is stored',
    edit: { in: 'createWatch', find: 'if (watching === undefined) lookAgain(at);', replace: 'lookAgain;' },
    test: { file: 'test/channel-kit/client-connection.test.ts', name: 'reads again by itself' },
  },
  {
    name: 'a client read from without end',
    invariant: 'what a client sends waits with it while the store is slow',
    edit: {
      in: 'createHolds',
      find: 'if (waiting === maxWaiting) link.setPaused(true);',
      replace: '{}',
    },
    test: { file: 'test/channel-kit/client-connection.test.ts', name: 'reads no further from a client' },
  },
  {
    name: 'a piped line sent before the timeline is known',
    invariant: 'the terminal prints every answer to what it has sent',
    edit: { in: 'createChatLink', find: 'if (isCaughtUp) write(frame);', replace: 'write(frame);' },
    also: [
      {
        in: 'createChatLink',
        find: "options.onState('open');",
        replace: "for (const own of kept.values()) write(own); options.onState('open');",
      },
    ],
    test: { file: 'test/cli/chat-client.test.ts', name: 'prints the answer to a command if the first read' },
  },
  {
    name: 'words that were seen are written anew',
    invariant: 'a stream that broke is asked for once more only if nobody has seen a word of it',
    edit: {
      in: 'cameToNothing',
      find: 'config.isShown?.() === false',
      replace: 'config.isShown !== undefined',
    },
    test: {
      file: 'test/agent/asked-anew.test.ts',
      name: 'that breaks off behind words is asked once more unless somebody may have seen them',
    },
  },
  {
    name: 'an answer beyond all limits is asked for again',
    invariant: 'no answer that is too large is paid for twice',
    edit: {
      in: 'oversizedIn',
      find: "{ kind: 'oversized', detail }",
      replace: "{ kind: 'oversized', detail, retry: { kind: 'later' } }",
    },
    test: { file: 'test/models/bounded-answer.test.ts', name: 'isn’t paid for again' },
  },
  {
    name: 'the last failure of a run is forgotten',
    invariant: 'a run that is given up says why',
    edit: { in: 'releaseFailedRun', find: 'if (failure !== undefined)', replace: 'if (failure === "")' },
    test: { file: 'test/runs/let-go.test.ts', name: 'and says why' },
  },
  {
    name: 'an image is loaded from wherever its part says',
    invariant: 'no message shows a file from outside of the media folder',
    edit: { in: 'imagesIn', find: 'readMediaName(name) === undefined', replace: 'name === ""' },
    test: { file: 'test/runs/stored-image.test.ts', name: 'none from outside' },
  },
  {
    name: 'markup around nothing disappears',
    invariant: 'nothing a model wrote disappears',
    edit: {
      in: 'visible',
      find: 'isInvisible(formatted.text) ? plainText(markdown.trim()) : formatted',
      replace: 'markdown === "" ? plainText("") : formatted',
    },
    test: {
      file: 'test/replies/markdown-formatter.test.ts',
      name: 'shows markup around nothing as written: 0',
    },
  },
  {
    name: 'a shown answer removed by a stop',
    invariant: 'a stop keeps what people have seen of an answer',
    edit: { in: 'planEnd', find: "why.stop === 'stop' && why.shown", replace: 'why.shown && undefined' },
    test: { file: 'test/runs/stop.test.ts', name: 'keeps what an answer has shown as edit' },
  },
  {
    name: 'text kept by a stop that nobody saw',
    invariant: 'a stop sends nothing new',
    edit: {
      in: 'RunView',
      find: "this.#style === 'draft' || this.#surface.standing() ? this.#shownAnswer : undefined",
      replace: 'this.#text.now()',
    },
    test: { file: 'test/runs/stop.test.ts', name: 'nothing is shown while it is written' },
  },
  {
    name: 'formulas read as markup',
    invariant: 'formulas and file patterns are shown as they are written',
    edit: {
      in: 'formatMarkdown',
      find: 'hideLiterals(markdown.trimEnd())',
      replace: '(void hideLiterals, markdown.trimEnd())',
    },
    test: { file: 'test/replies/literal-text.test.ts', name: 'as it is written, on every network' },
  },
  {
    name: 'an address in a table dropped',
    invariant: 'nothing a model wrote disappears',
    edit: { in: 'writeTable', find: 'of addresses)', replace: 'of [...addresses].slice(0, 0))' },
    test: { file: 'test/replies/markdown.test.ts', name: 'keeps the address and the lines of' },
  },
  {
    name: 'a lane handed over before its preview is recorded',
    invariant: 'a half answer never stays beside the whole one',
    edit: { in: 'executeRun', find: 'await recordShown(deps.clock, live);', replace: 'void recordShown;' },
    test: { file: 'test/runs/hand-over.test.ts', name: 'leaves it to the next process as a message' },
  },
  {
    name: 'what replaces a refused change may stand already',
    invariant: 'a part that never left is sent',
    edit: { in: 'settleFailure', find: 'isUnsent ? undefined : mayStandSince', replace: 'mayStandSince' },
    test: { file: 'test/store/delivery/reply-outcome.test.ts', name: 'is sent in place of an edit' },
  },
  {
    name: 'a change that is refused is made again for ever',
    invariant: 'no part holds up its conversation for ever',
    edit: { in: 'stepFor', find: "mayRepeat ? 'send' : 'give-up'", replace: "'send'" },
    test: { file: 'test/store/delivery/cut-off-send.test.ts', name: 'after ten attempts at a change' },
  },
  {
    name: 'what is handed over while it stops is left',
    invariant: 'a call that was begun is on record before the store closes',
    edit: { in: 'createDeliverer', find: 'while (working.size > 0)', replace: 'if (working.size > 0)' },
    test: { file: 'test/outbox/store-trouble.test.ts', name: 'once it has stopped' },
  },
  {
    name: 'a preview in the middle of an earlier answer',
    invariant: 'what is said in a conversation appears in its order',
    edit: {
      in: 'recordPreview',
      find: 'if (await headPart.first(tx, { conversationKey })) return false;',
      replace: 'void headPart;',
    },
    test: { file: 'test/runs/live-view.test.ts', name: 'comes after everything that was said before' },
  },
  {
    name: 'a preview that turns up late stays',
    invariant: 'a half answer never stays beside the whole one',
    edit: { in: 'settleSent', find: 'lane.epoch === epoch', replace: 'lane.epoch >= epoch' },
    test: { file: 'test/runs/live-view.test.ts', name: 'is taken away where another process' },
  },
  {
    name: 'a preview that is forgotten while the store is away',
    invariant: 'a half answer never stays beside the whole one',
    edit: {
      in: 'EditedMessage',
      find: "await store.write(recordPreview, { kind: 'sent', ...shown });",
      replace:
        "this.#standing = undefined; await store.write(recordPreview, { kind: 'sent', ...shown }); this.#standing = { key, messageId };",
    },
    test: { file: 'test/runs/live-view.test.ts', name: 'is kept where the store is away' },
  },
  {
    name: 'a preview in no journal',
    invariant: 'a half answer never stays beside the whole one',
    edit: { in: 'EditedMessage', find: 'journal.shown(shown);', replace: 'void shown;' },
    test: { file: 'test/runs/live-view.test.ts', name: 'is in the journal' },
  },
  {
    name: 'a preview recorded again taken from its next holder',
    invariant: 'a result counts once, however often it is recorded',
    edit: { in: 'confirmPreview', find: "    .where('state', '=', 'unknown')\n", replace: '' },
    test: { file: 'test/store/delivery/record-preview.test.ts', name: 'stays the next holder' },
  },
  {
    name: 'an answer removed that took over a preview unrecorded',
    invariant: 'an answer that was sent stays',
    edit: { in: 'confirmPreview', find: "    .where('endedAt', 'is', null)\n", replace: '' },
    test: { file: 'test/store/delivery/record-preview.test.ts', name: 'has taken over unrecorded' },
  },
  {
    name: 'a preview that a network could find not looked for',
    invariant: 'a half answer never stays beside the whole one',
    edit: { in: 'openLiveView', find: 'lost && lookFor(lost)', replace: 'lost && undefined' },
    test: { file: 'test/runs/lost-preview.test.ts', name: 'where its network says that it stands' },
  },
  {
    name: 'previews that wait for one another',
    invariant: 'an answer waits for one call of its preview at most',
    edit: { in: 'RunView', find: '|| this.#inFlight', replace: '|| false' },
    test: { file: 'test/runs/live-view.test.ts', name: 'has one call in flight' },
  },
  {
    name: 'a notice behind the end of its run',
    invariant: 'that the model does not answer yet is never said after its answer',
    edit: { in: 'storeNotice', find: 'if (lane.runId !== input.runId) return effects;', replace: '' },
    test: {
      file: 'test/store/lanes/lanes.test.ts',
      name: 'says something beside the answers while the run lasts, and nothing behind its end',
    },
  },
];
