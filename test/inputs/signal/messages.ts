/** Messages with content for the model. */
import {
  ada,
  aFile,
  at,
  bea,
  botAci,
  content,
  data,
  envelope,
  group,
  type SignalInput,
} from './signal-input.ts';

const records = 'signal-cli 0.14, org.asamk.signal.json records';
const sent = (fields: Readonly<Record<string, unknown>>) =>
  envelope({
    sourceUuid: botAci,
    syncMessage: {
      sentMessage: {
        destination: null,
        destinationNumber: null,
        destinationUuid: botAci,
        ...content(fields),
      },
    },
  });

export const messages: readonly SignalInput[] = [
  {
    name: 'a text',
    shape: 'signal-cli-rest-api #331',
    frame: data({ message: 'hey' }),
    read: { event: 'message', text: 'hey' },
  },
  {
    name: 'a text in a group',
    shape: records,
    frame: data({ message: 'hey', groupInfo: group }),
    read: { event: 'message', text: 'hey' },
  },
  {
    name: 'a text with the empty lists of old releases',
    shape: 'signal-cli-rest-api #52',
    frame: data({
      message: 'hey',
      attachments: [],
      contacts: [],
      previews: [],
      mentions: [],
      quote: null,
      groupInfo: null,
    }),
    read: { event: 'message', text: 'hey' },
  },
  {
    name: 'a mention of the bot',
    shape: 'signal-cli #1980',
    frame: data({
      message: '\uFFFC look',
      mentions: [{ name: 'x', number: null, uuid: botAci, start: 0, length: 1 }],
    }),
    read: { event: 'message', text: '@Parley look', callsBot: true },
  },
  {
    name: 'a placeholder without its mention',
    shape: 'signal-cli #1980, release 0.13.22',
    frame: data({ message: '\uFFFC look' }),
    read: { event: 'message', text: '\uFFFC look' },
  },
  {
    name: 'a text with styles',
    shape: records,
    frame: data({ message: 'so bold', textStyles: [{ style: 'BOLD', start: 3, length: 4 }] }),
    read: { event: 'message', text: 'so bold' },
  },
  {
    name: 'a picture without a caption',
    shape: 'signal-cli-rest-api #52',
    frame: data({ attachments: [aFile('a.jpg')] }),
    read: { event: 'message', media: ['image a.jpg'] },
  },
  {
    name: 'a picture with its own caption',
    shape: 'signal-cli #1217',
    frame: data({ attachments: [aFile('a.jpg', { caption: 'my cat' })] }),
    read: { event: 'message', text: 'my cat', media: ['image a.jpg'] },
  },
  {
    name: 'two pictures with a text and a caption',
    shape: 'signal-cli #390',
    frame: data({ message: 'both', attachments: [aFile('a.jpg', { caption: 'one' }), aFile('b.jpg')] }),
    read: { event: 'message', text: 'both\none', media: ['image a.jpg', 'image b.jpg'] },
  },
  {
    name: 'a voice message',
    shape: records,
    frame: data({ attachments: [aFile('v.m4a', { contentType: 'audio/aac' })] }),
    read: { event: 'message', media: ['audio v.m4a'] },
  },
  ...[null, '', 'application/octet-stream', 'text/plain'].map(
    (contentType): SignalInput => ({
      name: `a voice message of the type ${JSON.stringify(contentType)}, without a name`,
      shape: 'openclaw/openclaw#61143, #11066: Signal on Linux',
      frame: data({
        attachments: [aFile('v', { contentType, filename: null, size: 0, isVoiceNote: true })],
      }),
      read: { event: 'message', media: ['voice v'] },
    }),
  ),
  {
    name: 'a voice message that says so',
    shape: 'AsamK/signal-cli#2100, isVoiceNote',
    frame: data({ attachments: [aFile('v.m4a', { contentType: 'audio/aac', isVoiceNote: true })] }),
    read: { event: 'message', media: ['voice v.m4a'] },
  },
  {
    name: 'a message in a group beside an empty record of another device',
    shape: 'openclaw/openclaw#28417, #34546',
    frame: envelope({ dataMessage: content({ message: 'hello', groupInfo: group }), syncMessage: {} }),
    read: { event: 'message', text: 'hello' },
  },
  {
    name: 'a message in a group whose record of another device is null',
    shape: 'openclaw/openclaw#34546',
    frame: envelope({ dataMessage: content({ message: 'hello', groupInfo: group }), syncMessage: null }),
    read: { event: 'message', text: 'hello' },
  },
  {
    name: 'a file that the server does not have',
    shape: 'signal-cli-rest-api, JSON_RPC_IGNORE_ATTACHMENTS',
    frame: data({ attachments: [aFile('', { filename: 'offer.pdf', contentType: 'application/pdf' })] }),
    read: { event: 'message', described: ["File that isn't on the server: offer.pdf, application/pdf"] },
  },
  {
    name: 'a picture to be looked at once',
    shape: 'signalbot pull request 156',
    frame: data({ viewOnce: true, attachments: [aFile('once.png', { contentType: 'image/png' })] }),
    read: { event: 'message', media: ['image once.png'] },
  },
  {
    name: 'a quote of a text',
    shape: 'signal-cli #389',
    frame: data({
      message: 'why?',
      quote: { id: at - 9, author: bea, authorNumber: null, authorUuid: bea, text: 'No.' },
    }),
    read: { event: 'message', text: 'why?', quote: { text: 'No.', author: 'Bea', of: `${bea}:${at - 9}` } },
  },
  {
    name: 'a quote whose author has no ACI',
    shape: 'signal-cli records, authorUuid null',
    frame: data({
      message: 'this one?',
      quote: {
        id: at - 9,
        author: '+15550123',
        authorNumber: '+15550123',
        authorUuid: null,
        text: 'the offer of Monday',
        attachments: [],
      },
    }),
    read: {
      event: 'message',
      text: 'this one?',
      quote: { text: 'the offer of Monday', author: '+15550123' },
    },
  },
  {
    name: 'a quote of a picture with a preview',
    shape: 'signal-cli #390',
    frame: data({
      message: 'what is on it?',
      quote: {
        id: at - 9,
        authorUuid: bea,
        text: '',
        attachments: [{ contentType: 'image/jpeg', filename: null, thumbnail: aFile('thumb') }],
      },
    }),
    read: {
      event: 'message',
      text: 'what is on it?',
      quote: { media: ['image thumb'], author: 'Bea', of: `${bea}:${at - 9}` },
    },
  },
  {
    name: 'a quote of a picture without a preview',
    shape: 'signal-cli #389',
    frame: data({
      message: 'and this?',
      quote: {
        id: at - 9,
        authorUuid: bea,
        text: null,
        attachments: [{ contentType: 'image/jpeg', filename: 'holiday.jpg' }],
      },
    }),
    read: {
      event: 'message',
      text: 'and this?',
      quote: { described: ['[file: holiday.jpg, image/jpeg]'], author: 'Bea', of: `${bea}:${at - 9}` },
    },
  },
  {
    name: 'a quote without anything but its time',
    shape: 'signal-cli #1959',
    frame: data({ message: 'hm', quote: { id: at - 9 } }),
    read: { event: 'message', text: 'hm', quote: {} },
  },
  {
    name: 'a poll',
    shape: 'signal-cli #2002',
    frame: data({ pollCreate: { question: '/stop?', allowMultiple: true, options: ['yes', 'no'] } }),
    read: { event: 'message', described: ['Poll (several answers allowed): /stop?', '1. yes', '2. no'] },
  },
  {
    name: 'a poll without options',
    shape: records,
    frame: data({ pollCreate: { question: 'Now?', allowMultiple: false, options: null } }),
    read: { event: 'message', described: ['Poll: Now?'] },
  },
  {
    name: 'a contact',
    shape: records,
    frame: data({
      contacts: [
        {
          name: { given: 'Carla', family: 'Lund' },
          avatar: null,
          phone: [{ value: '+15550111', type: 'MOBILE', label: null }],
          email: [{ value: 'carla@example.org', type: 'HOME' }],
          address: null,
          organization: 'Lund & Co',
        },
      ],
    }),
    read: { event: 'message', described: ['Contact: Carla Lund, Lund & Co, +15550111, carla@example.org'] },
  },
  {
    name: 'a contact with a picture and an address',
    shape: 'signal-cli JsonSharedContact, JsonContactAvatar',
    frame: data({
      contacts: [
        {
          name: { nickname: null, given: 'Carla', family: null },
          avatar: { attachment: aFile('carla.jpg'), isProfile: false },
          phone: [{ value: '+15550111', type: 'HOME' }],
          email: null,
          address: [{ type: 'HOME', street: 'Main St 1', city: 'Ulm', country: 'Germany' }],
          organization: null,
        },
      ],
    }),
    read: { event: 'message', described: ['Contact: Carla, +15550111, Main St 1 Ulm Germany'] },
  },
  {
    name: 'a contact without a name',
    shape: records,
    frame: data({ contacts: [{ name: null, phone: null }] }),
    read: { event: 'message', described: ['Contact: without a name'] },
  },
  {
    name: 'a sticker',
    shape: 'signal-cli #418',
    frame: data({ sticker: { packId: 'ab12', stickerId: 3 } }),
    read: { event: 'message', described: ['Sticker number 3 of a sticker pack'] },
  },
  {
    name: 'a payment',
    shape: records,
    frame: data({ payment: { note: 'for lunch', receipt: 'AA==' } }),
    read: { event: 'message', described: ['Notice of a payment: for lunch'] },
  },
  {
    name: 'a link with its preview',
    shape: records,
    frame: data({
      message: 'https://example.org',
      previews: [{ url: 'https://example.org', title: 'Example', description: 'A page', image: null }],
    }),
    read: {
      event: 'message',
      text: 'https://example.org',
      described: ['Preview of a link: Example – A page – https://example.org'],
    },
  },
  {
    name: 'a reply to a story',
    shape: records,
    frame: data({
      message: 'nice!',
      storyContext: { authorNumber: null, authorUuid: ada, sentTimestamp: at - 9 },
    }),
    read: { event: 'message', text: 'nice!', origin: 'story' },
  },
  {
    name: 'a note to self',
    shape: 'signal-cli-rest-api #680',
    frame: sent({ message: 'remember' }),
    read: { event: 'message', text: 'remember' },
  },
  {
    name: 'an edit',
    shape: records,
    frame: envelope({
      editMessage: { targetSentTimestamp: at - 9, dataMessage: content({ message: 'better' }) },
    }),
    read: { event: 'edit', text: 'better' },
  },
  {
    name: 'an edit of a kind that nobody knows',
    shape: 'signal-cli records with an invented field',
    frame: envelope({
      editMessage: { targetSentTimestamp: at - 9, dataMessage: content({ hologram: { size: 2 } }) },
    }),
    read: { event: 'edit', unknown: ['hologram'] },
  },
  {
    name: 'a message of a kind that nobody knows',
    shape: 'signal-cli records with an invented field',
    frame: data({ hologram: { size: 2 }, mood: 'blue' }),
    read: { event: 'message', unknown: ['hologram', 'mood'] },
  },
];
