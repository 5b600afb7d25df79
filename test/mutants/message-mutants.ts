import type { Mutant } from './mutants.ts';

const files = 'test/tools/message-files.test.ts';
const earlierFiles = 'test/inbound/context-files.test.ts';
const targets = 'test/store/delivery/tool-target.test.ts';

/** Broken variants of what the `message` tool does besides sending text. */
export const messageMutants: readonly Mutant[] = [
  {
    name: 'pictures of a group that stay lines',
    invariant: 'a picture posted in a group comes with the message that calls the agent',
    edit: { in: 'withContextFiles', find: '.slice(-maxFiles)', replace: '.slice(0, 0)' },
    test: { file: earlierFiles, name: 'is fetched with the message that calls the agent' },
  },
  {
    name: 'a picture for each of two waiting messages',
    invariant: 'a file of an earlier message comes with one message only',
    edit: { in: 'withContextFiles', find: '!known.has(fileKeyOf(file))', replace: 'true' },
    test: { file: earlierFiles, name: 'comes once' },
  },
  {
    name: 'a deleted picture fetched all the same',
    invariant: 'a file whose message was deleted isn’t fetched',
    edit: { in: 'withdrawFiles', find: 'withdrawn.size === 0', replace: 'withdrawn.size >= 0' },
    test: { file: earlierFiles, name: 'isn’t fetched once it was deleted' },
  },
  {
    name: 'a refusal without the provider’s words',
    invariant: 'the owner sees why a model refused',
    edit: { in: 'readFailures', find: 'failed.length === 0', replace: 'true' },
    test: { file: 'test/store/reads/timeline.test.ts', name: 'says why the run of a failed message failed' },
  },
  {
    name: 'each followup answer without a quote',
    invariant: 'of several waiting messages, each answer says which one it answers',
    edit: { in: 'targetOf', find: 'nextSeq > seq + 1', replace: 'nextSeq < seq' },
    test: { file: 'test/inbound/quoted-answers.test.ts', name: 'marks each message that others came after' },
  },
  {
    name: 'an edit that open clients aren’t told of',
    invariant: 'an edited waiting message shows its new text at once',
    edit: { in: 'applyEdit', find: 'effects.changes.push(row.laneKey);', replace: '' },
    test: {
      file: 'test/inbound/changes.test.ts',
      name: 'are announced to the clients that show it',
    },
  },
  {
    name: 'a code stored with the command that named it',
    invariant: 'a pairing or link code is never stored with the command that contained it',
    edit: { in: 'askedIn', find: 'order.command.mayHaveCode ?', replace: 'false ?' },
    test: {
      file: 'test/inbound/unknown-commands.test.ts',
      name: 'and never with a code',
    },
  },
  {
    name: 'a command missing after a reload',
    invariant: 'a command is shown before its answer in every reading of a timeline',
    edit: {
      in: 'readTimeline',
      find: 'asked.get(item.position) ?? []',
      replace: '(asked.delete(item.position) ? [] : [])',
    },
    test: { file: 'test/store/reads/timeline.test.ts', name: 'shows a command before its answer' },
  },
  {
    name: 'an edit without content erases what was said',
    invariant: 'an edit that cannot be read never erases the earlier version',
    edit: { in: 'decideEdit', find: 'if (!hasContent(event))', replace: 'if (false)' },
    test: {
      file: 'test/inbound/other-content.test.ts',
      name: 'is told to a run that has read the message, and noted after one',
    },
  },
  {
    name: 'a forward apart from its comment',
    invariant: 'a comment and the forward after it are one turn',
    edit: { in: 'acceptItem', find: "company === 'in-run' ? 'always' : 'mode'", replace: "'mode'" },
    test: {
      file: 'test/inbound/company.test.ts',
      name: 'are one run in the mode followup when the run has read the comment',
    },
  },
  {
    name: 'a file to be looked at once kept',
    invariant: 'a file that may be looked at once is removed with the end of its turn',
    edit: { in: 'oldFiles', find: 'isViewOnce || ageMs >= keepMs', replace: 'ageMs >= keepMs' },
    test: {
      file: 'test/inbound/media-retention.test.ts',
      name: 'that may be looked at once are removed with the end of their turn, and not before',
    },
  },
  {
    name: 'message of another conversation quoted',
    invariant: 'an agent refers to no message but those of the conversation it speaks in',
    edit: {
      in: 'isHeard',
      find: ".where('conversationKey', '=', conversationKey)\n.where('messageId', '=', id)\n.where('laneKey', '=', laneKey)\n.executeTakeFirst();\nif (item) return true;",
      replace:
        ".where('messageId', '=', id)\n.executeTakeFirst();\nif (item) return true;\nvoid [conversationKey, laneKey];",
    },
    test: { file: targets, name: 'is quoted in no other conversation' },
  },
  {
    name: 'refused change of a tool said as a message',
    invariant: 'what an agent wanted to change and the network refused is said by nobody, but for the agent',
    edit: { in: 'repairFor', find: "if (purpose === 'tool') return undefined;", replace: 'void purpose;' },
    test: { file: targets, name: 'nothing is said instead' },
  },
  {
    name: 'change of a message in a group with new ids',
    invariant: 'a group that has another id has other messages under the ids it had before',
    edit: { in: 'moveConversation', find: "part.purpose === 'tool'", replace: "part.purpose === ''" },
    test: { file: targets, name: 'has another id once its group has' },
  },
  {
    name: 'foreign message edited',
    invariant: 'an agent changes no message but its own of the conversation it speaks in',
    edit: { in: 'findOwn', find: ".where('outbox.laneKey', '=', laneKey)", replace: '' },
    also: [{ in: 'findOwn', find: ".where('receipts.conversationKey', '=', conversationKey)", replace: '' }],
    test: { file: targets, name: 'only if the agent has sent it there' },
  },
  {
    name: 'notice edited by the agent',
    invariant: 'what Parley itself asks and says, approvals above all, no agent can word anew',
    edit: { in: 'findOwn', find: ".where('outbox.purpose', 'in', ['reply', 'tool'])", replace: '' },
    test: { file: targets, name: 'only if the agent has sent it there' },
  },
  {
    name: 'edit by a stranger',
    invariant: 'what others rely on is changed for nobody who is only a guest',
    edit: { in: 'findChangeable', find: 'own.runId !== place.onlyRun', replace: 'own.runId === null' },
    test: { file: targets, name: 'is changed for a guest only if this very run has sent it' },
  },
  {
    name: 'file outside the workspace sent',
    invariant: 'no file is sent but a regular one inside the workspace, reached by no link',
    edit: {
      in: 'createWorkspaceReader',
      find: 'return (await files.read(path, $$REST)).bytes;',
      replace:
        "return (await import('node:fs/promises')).readFile((await import('node:path')).resolve(workspace, path));",
    },
    test: { file: files, name: 'are of the workspace, by no link' },
  },
  {
    name: 'file sent for somebody who may not read it',
    invariant: 'a file is sent for nobody for whom it would not be read',
    edit: {
      in: 'copyOutgoing',
      find: 'leastTrusted(run.authority, reader.authority) !== reader.authority',
      replace: 'leastTrusted === undefined',
    },
    test: { file: files, name: 'are sent for nobody who may not read them' },
  },
  {
    name: 'file sent again with the answer',
    invariant: 'a file that a tool has sent is sent by no answer once more',
    edit: {
      in: 'send',
      find: 'paths.map((path) => resolve(run.workspace, path))',
      replace: '(void [resolve, run], paths)',
    },
    test: { file: files, name: 'are not sent once more with the answer' },
  },
  {
    name: 'file read anew by a repeated call',
    invariant: 'a call that is made again finds what it has sent, whatever has become of the file',
    edit: { in: 'send', find: 'isRepeat ? [] : await contentsOf', replace: 'await contentsOf' },
    test: { file: files, name: 'are not read again by a call that has stored its message' },
  },
  {
    name: 'copy removed before it is sent',
    invariant: 'a file that waits to be sent is there until it is',
    edit: { in: 'findUse', find: "(await isToBeSent(tx, file)) ? 'needed' : 'idle'", replace: "'idle'" },
    test: {
      file: 'test/inbound/media-retention.test.ts',
      name: 'are removed when they were copied to be sent',
    },
  },
];
