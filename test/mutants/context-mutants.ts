/** Broken variants of compaction. */
import type { Mutant } from './mutants.ts';

const compactionCut = 'test/agent/compaction-cut.test.ts';
const resume = 'test/agent/resume.test.ts';
const cacheWatch = 'test/models/cache-watch.test.ts';
const compaction = 'test/runs/compaction.test.ts';
const streamInputs = 'test/inputs/models/streams.test.ts';

export const contextMutants: readonly Mutant[] = [
  {
    name: 'cut between call and result',
    invariant: 'a compaction parts no call from its results',
    edit: { in: 'boundariesOf', find: '&& !isInside[index]', replace: '' },
    test: { file: compactionCut, name: 'parts no call from its results' },
    isSample: true,
  },
  {
    name: 'request cut by the estimate',
    invariant: 'nothing leaves a request while the context fits by the count of the last call',
    edit: { in: 'fitContext', find: 'if (tokens <= window) return messages;', replace: '' },
    test: { file: 'test/agent/auto-compact.test.ts', name: 'comes before a request leaves anything out' },
  },
  {
    name: 'full window summarised all the same',
    invariant: 'a window that instructions and tools alone fill is told to the owner, not summarised',
    edit: { in: 'withFixedSize', find: 'fixedTokens < failure.window', replace: 'fixedTokens > 0' },
    test: { file: compaction, name: 'is not what fills a window too small for the instructions alone' },
  },
  {
    name: 'call ids as long as they come',
    invariant: 'every provider takes the ids of a history that another has written',
    edit: { in: 'maxIdLength', find: '36', replace: '64' },
    test: {
      file: 'test/agent/convert.test.ts',
      name: 'keeps ids and names as short as every provider takes them',
    },
  },
  {
    name: 'quiet model kept quiet about',
    invariant: 'a person hears of a model that says nothing for long',
    edit: { in: 'watchIdle', find: 'onQuiet();', replace: '' },
    test: { file: 'test/runs/empty-answer.test.ts', name: 'lets a minute pass is announced once' },
  },
  {
    name: 'summarised in vain, turn after turn',
    invariant: 'a summary that cannot bring a conversation below its threshold is not begun',
    edit: { in: 'autoCompact', find: 'undefined, room', replace: 'undefined, limits' },
    test: { file: 'test/agent/auto-compact.test.ts', name: 'instructions and tools are what is too long' },
  },
  {
    name: 'reasoning of a namesake',
    invariant: 'reasoning goes back to the provider and model that wrote it, and to no other',
    edit: { in: 'withOwnThinking', find: 'return isOwn ?', replace: 'return true ?' },
    test: { file: 'test/models/providers.test.ts', name: 'makes parallel calls apart from each other' },
  },
  {
    name: 'tools offered where they are refused',
    invariant: 'a model that takes no tools answers without them, and hears nothing of them',
    edit: { in: 'Question', find: 'withoutTools(request)', replace: '{ ...request, tools: [] }' },
    test: { file: 'test/models/providers.test.ts', name: 'whose model takes no tools answers without them' },
  },
  {
    name: 'two that learn at once',
    invariant: 'a server’s refusal of a parameter fails no call that was asked meanwhile',
    edit: {
      in: 'Question',
      find: 'this.#refused.has(name)',
      replace: 'this.#limits.unsupported(this.#api.clock.now()).has(name)',
    },
    test: { file: 'test/models/providers.test.ts', name: 'is asked so by two at once' },
  },
  {
    name: 'alarms by the words of a person',
    invariant: 'words that a server only repeats never say that a key is wrong or an account empty',
    edit: { in: 'classOf', find: '!alarming.has(line.is)', replace: 'true' },
    test: { file: 'test/models/refusals.test.ts', name: 'never raise an alarm about key or credit' },
  },
  {
    name: 'refusals without their wrapping',
    invariant: 'the cause behind a router’s refusal is found',
    edit: { in: 'Findings', find: 'inner !== undefined && depth < deepest', replace: 'false' },
    test: { file: 'test/models/refusals.test.ts', name: 'leads to what it means' },
  },
  {
    name: 'another answer added to the first',
    invariant: 'an answer is one answer, even if a proxy begins another inside of its stream',
    edit: { in: 'EventReader', find: 'id !== this.#id;', replace: "id === '';" },
    test: { file: streamInputs, name: 'read as what it is: another answer begun inside of the first' },
  },
  {
    name: 'null choices handed to the SDK',
    invariant: 'a null inside of a list makes an answer poorer, never unreadable',
    edit: { in: 'withoutNullChoices', find: '!choices.includes(null)', replace: 'choices.includes(null)' },
    test: { file: streamInputs, name: 'read as what it is: nulls where values belong' },
  },
  {
    name: 'empty delta believed',
    invariant: 'a complete message is read where its delta is empty',
    edit: {
      in: 'ChunkReader',
      find: 'choice.message && !isRepeated',
      replace: 'choice.message && !choice.delta',
    },
    test: { file: streamInputs, name: 'read as what it is: a whole answer beside an empty delta' },
  },
  {
    name: 'mentioned tag taken out',
    invariant: 'an answer about a tag keeps it',
    edit: {
      in: 'readTag',
      find: 'if (mention) take(scan, length);',
      replace: 'if (mention) scan.at += length;',
    },
    test: { file: 'test/replies/sanitize.test.ts', name: 'keeps a tag that a sentence mentions' },
  },
  {
    name: 'reasoning kept that was recalled',
    invariant: 'a preview that turns out to be reasoning is replaced or deleted',
    edit: { in: 'AssistantDraft', find: 'this.#recallText();', replace: '' },
    test: { file: 'test/e2e/recalled-preview.test.ts', name: 'turns out to be reasoning' },
  },
  {
    name: 'sound that counts for nothing',
    invariant: 'tokens that a server counts beside the prompt are part of it',
    edit: { in: 'usageOf', find: '? sound : 0', replace: '? 0 : 0' },
    test: { file: streamInputs, name: 'read as what it is: sound counted beside the prompt' },
  },
  {
    name: 'redirects followed to any host',
    invariant: 'a redirect carries nothing to another host',
    edit: { in: 'redirectWithin', find: 'to.host === from.host', replace: 'true' },
    test: { file: 'test/http/lean-fetch.test.ts', name: 'hands nothing to another host' },
  },
  {
    name: 'turns forgotten with their messages',
    invariant: 'a run’s turns count, whether a summary stands for them or not',
    edit: {
      in: 'findResumption',
      find: 'turns: turns.size - (isOpen ? 1 : 0),',
      replace: 'turns: before.length,',
    },
    test: { file: resume, name: 'counts the turns that a summary stands for' },
  },
  {
    name: 'calls forgotten with their messages',
    invariant: 'the loop guard counts identical calls, whether a summary stands for them or not',
    edit: {
      in: 'findResumption',
      find: '...entries.flatMap(({ summarised }) => summarised ?? []),',
      replace: '',
    },
    test: { file: resume, name: 'remembers the calls that a summary stands for' },
  },
  {
    name: 'unread messages summarised away',
    invariant: 'a compaction keeps what the model has not answered',
    edit: { in: 'cutOf', find: '.filter((index) => index <= unread)', replace: '' },
    test: {
      file: compactionCut,
      name: 'keeps all that the model has not answered, and something before is given up',
    },
  },
  {
    name: 'summary of a holder that lost the lane',
    invariant: 'only the holder of a lane moves its summary pointer',
    edit: {
      in: 'commitSummary',
      find: '(end === undefined ? lockLaneAt : lockLineageAt)(tx, laneKey, epoch)',
      replace: '(end === undefined ? Promise.resolve() : lockLineageAt(tx, laneKey, epoch))',
    },
    test: {
      file: 'test/store/lanes/commit-summary.test.ts',
      name: 'of a holder that has lost the lane changes nothing',
    },
  },
  {
    name: 'facts forgotten at the next summary',
    invariant: 'a remembered fact stays until the summarising model drops it',
    edit: { in: 'writeSummary', find: 'known: known?.facts ?? []', replace: 'known: []' },
    test: {
      file: compaction,
      name: 'is summarised once for each crossing, and still knows what was said first',
    },
  },
  {
    name: 'cut one message late',
    invariant: 'a message is in the summary or shown as it was written',
    edit: {
      in: 'compactSession',
      find: 'keptFrom: kept[0]?.position ??',
      replace: 'keptFrom: kept[1]?.position ??',
    },
    test: {
      file: 'test/runs/compaction-property.test.ts',
      name: 'loses nothing that it must keep, and nothing at all when the summary does not come about',
    },
  },
  {
    name: 'secrets in the payload log',
    invariant: 'no secret that Parley knows is written down',
    edit: { in: 'shown', find: 'redactCodes(redact(part))', replace: 'redactCodes(part)' },
    test: {
      file: 'test/models/observers.test.ts',
      name: 'writes requests and answers to a file of its owner, without keys, tokens and codes',
    },
  },
  {
    name: 'summary outside of the ledger',
    invariant: 'each call of a summary has its row and is held to the budgets',
    edit: {
      in: 'compactorOf',
      find: "models.nameFor(agentId, 'summary', model), calls.beside('summary')",
      replace: "models.nameFor(agentId, 'summary', model)",
    },
    test: { file: compaction, name: 'is not summarised beyond a budget' },
  },
  {
    name: 'tools that are not sent are counted',
    invariant: '/context counts what the model was sent',
    edit: {
      in: 'recordingSizes',
      find: 'record(event.withoutTools ?? !takesTools)',
      replace: 'record(!takesTools)',
    },
    test: { file: 'test/runs/prompt-sizes.test.ts', name: 'counts the tools' },
  },
  {
    name: 'every cache miss is unexplained',
    invariant: 'the owner isn’t told of a cache miss that Parley itself has caused',
    edit: {
      in: 'CacheWatch',
      find: 'part !== undefined && !changed.includes(part)',
      replace: 'part !== undefined',
    },
    test: { file: cacheWatch, name: 'explains a miss by instructions that Parley has changed' },
  },
  {
    name: 'every cache miss is explained',
    invariant: 'the owner is told of a cache miss that Parley can’t have caused',
    edit: {
      in: 'CacheWatch',
      find: 'messagesBefore === before.messages.hash',
      replace: 'sent.messages.hash === before.messages.hash',
    },
    test: { file: cacheWatch, name: 'gives the reason messages_changed' },
  },
  {
    name: 'cache miss not kept',
    invariant: 'why shows the reason of a cache miss',
    edit: {
      in: 'closeModelCalls',
      find: 'JSON.stringify({ doubt, cacheMiss })',
      replace: 'JSON.stringify({ doubt })',
    },
    test: { file: 'test/store/money/model-calls.test.ts', name: 'keeps why a call was not read' },
  },
  {
    name: 'compatible servers are asked about their cache',
    invariant: 'only Anthropic’s own server is asked for what others may refuse',
    edit: { in: 'isAnthropicServer', find: 'new URL(baseUrl).origin === anthropicHost', replace: 'true' },
    test: { file: cacheWatch, name: 'is not asked about at any other server' },
  },
];
