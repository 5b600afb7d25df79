import type { Mutant } from './mutants.ts';

const corpus = 'test/inputs/telegram/corpus.test.ts';
const mutations = 'test/inputs/telegram/mutations.test.ts';

/** Broken variants of the reading of Telegram's updates. */
export const telegramMutants: readonly Mutant[] = [
  {
    name: 'unknown content refused without its name',
    invariant: 'a message without any known content says which fields it had',
    edit: {
      in: 'readContentEvent',
      find: 'content.unknownFields === undefined ?',
      replace: 'content.unknownFields !== null ?',
    },
    test: { file: corpus, name: 'a message of a kind that nobody knows yet' },
    isSample: true,
  },
  {
    name: 'links without their addresses',
    invariant: 'the address behind a word reaches the model',
    edit: { in: 'linkWords', find: 'url === undefined ||', replace: 'url !== null ||' },
    test: { file: corpus, name: 'a link behind a word' },
  },
  {
    name: 'commands read from the words with their addresses',
    invariant: 'an address behind a link is never read as a command or a mention',
    edit: { in: 'readWords', find: '{ text, ...(shown', replace: '{ text: shown, ...(shown' },
    test: { file: corpus, name: 'a command behind a link stays the text that it is' },
  },
  {
    name: 'quotes without their files',
    invariant: 'the picture that somebody asks about reaches the model',
    edit: { in: 'withoutEmpty', find: 'attachments.length > 0 && { attachments }', replace: '{}' },
    test: { file: corpus, name: 'a reply to a photo' },
  },
  {
    name: 'a replaced photo as the edit before it',
    invariant: 'two edits of one second with different files are two edits',
    edit: { in: 'versionOf', find: '...attachments.map(({ fileId, ref }) => fileId ?? ref)', replace: '' },
    test: {
      file: 'test/channels/telegram/inbound.test.ts',
      name: 'within one second differ by their text and their files',
    },
  },
  {
    name: 'an unknown block without its text',
    invariant: 'blocks of a kind that nobody knows keep their text',
    edit: {
      in: 'RichReader',
      find: 'this.inline(block) : this.#unknown(block)',
      replace: "this.inline(block) : ''",
    },
    test: { file: corpus, name: 'a block and a mark of kinds that nobody knows yet keep their text' },
  },
  {
    name: 'a broken chat of a speaker that is skipped',
    invariant: 'who speaks as a chat is never taken for the account that stands in',
    edit: { in: 'speaker', find: 'z.preprocess(noId, chatSchema.optional())', replace: 'part(chatSchema)' },
    test: { file: mutations, name: 'is never read as words of the stand-in account' },
  },
  {
    name: 'one broken member that hides the others of its list',
    invariant: 'a broken member of a list costs nothing beside it',
    edit: {
      in: 'listOf',
      find: 'return read.success ? [read.data] : [];',
      replace: 'if (!read.success) throw read.error; return [read.data];',
    },
    test: { file: corpus, name: 'a poll with broken options' },
  },
];
