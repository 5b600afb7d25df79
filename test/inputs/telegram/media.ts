/** Files, with and without words. */
import {
  aFile,
  aMessage,
  edited,
  groupMessage,
  inGroup,
  message,
  type TelegramInput,
} from './telegram-input.ts';

const album = (fields: object) => aMessage({ media_group_id: '139', ...fields });

export const media: readonly TelegramInput[] = [
  {
    name: 'a photo in several sizes',
    shape: 'python-telegram-bot tests/_files/test_photo.py',
    update: message({ photo: [aFile('S', { width: 90 }), aFile('L', { width: 1280 })] }),
    read: { event: 'message', media: ['image L'] },
  },
  {
    name: 'a photo without words in a group',
    shape: 'NousResearch/hermes-agent#22250, a photo that nobody has asked about yet',
    update: groupMessage({ photo: [aFile('P')] }),
    read: { event: 'message', media: ['image P'] },
  },
  {
    name: 'a photo of an album with the words of the album',
    shape: 'grammY, media_group_id with the caption on the first photo',
    update: { update_id: 1, message: album({ photo: [aFile('A1')], caption: 'our beans' }) },
    read: { event: 'message', text: 'our beans', media: ['image A1'], album: '139' },
  },
  {
    name: 'a live photo, which comes with a photo',
    shape: 'python-telegram-bot tests/_files/test_livephoto.py',
    update: message({ live_photo: aFile('LV', { duration: 3 }), photo: [aFile('LP')] }),
    read: { event: 'message', media: ['image LP'] },
  },
  {
    name: 'a live photo whose picture is only inside',
    shape: 'Bot API 10, LivePhoto.photo',
    update: message({ live_photo: aFile('LV', { duration: 3, photo: [aFile('IN')] }) }),
    read: { event: 'message', media: ['image IN'] },
  },
  {
    name: 'a voice message',
    shape: 'python-telegram-bot tests/_files/test_voice.py',
    update: message({ voice: aFile('V', { duration: 4, mime_type: 'audio/ogg' }) }),
    read: { event: 'message', media: ['voice V'] },
  },
  {
    name: 'a song',
    shape: 'python-telegram-bot tests/_files/test_audio.py',
    update: message({ audio: aFile('M', { duration: 4, performer: 'Bea', title: 'Rain' }) }),
    read: { event: 'message', media: ['audio M'] },
  },
  {
    name: 'a video with words above it',
    shape: 'Bot API, show_caption_above_media and has_media_spoiler',
    update: message({
      video: aFile('V', { duration: 4 }),
      caption: 'look',
      show_caption_above_media: true,
      has_media_spoiler: true,
    }),
    read: { event: 'message', text: 'look', media: ['video V'] },
  },
  {
    name: 'a round video',
    shape: 'python-telegram-bot tests/_files/test_videonote.py',
    update: message({ video_note: aFile('R', { length: 240, duration: 4 }) }),
    read: { event: 'message', media: ['video R'] },
  },
  {
    name: 'an animation, once although it comes twice',
    shape: 'Bot API, animation with a document for older clients',
    update: message({ animation: aFile('G'), document: aFile('G', { mime_type: 'video/mp4' }) }),
    read: { event: 'message', media: ['video G'] },
  },
  {
    name: 'a document',
    shape: 'python-telegram-bot tests/_files/test_document.py',
    update: message({ document: aFile('D', { file_name: 'plan.pdf', mime_type: 'application/pdf' }) }),
    read: { event: 'message', media: ['file D'] },
  },
  {
    name: 'a picture that was sent as a file',
    shape: 'NousResearch/hermes-agent#37970, image documents',
    update: message({ document: aFile('D', { mime_type: 'image/png' }) }),
    read: { event: 'message', media: ['image D'] },
  },
  {
    name: 'a still sticker',
    shape: 'python-telegram-bot tests/_files/test_sticker.py',
    update: message({
      sticker: aFile('K', { type: 'regular', emoji: '🌱', set_name: 'Garden', is_animated: false }),
    }),
    read: { event: 'message', described: ['[Sticker: 🌱 from “Garden”]'], media: ['image K'] },
  },
  {
    name: 'an animated sticker without an emoji',
    shape: 'aiogram test_message.py, a sticker without emoji and set',
    update: message({ sticker: aFile('K', { type: 'regular', is_animated: true }) }),
    read: { event: 'message', described: ['[Sticker: without emoji]'] },
  },
  {
    name: 'an animated sticker with a preview',
    shape: 'openclaw/openclaw#142530; AstrBotDevs/AstrBot#9610',
    update: message({
      sticker: aFile('K', { type: 'regular', emoji: '😎', is_animated: true, thumbnail: aFile('T') }),
    }),
    read: { event: 'message', described: ['[Sticker: 😎]'], media: ['image T'] },
  },
  {
    name: 'a sticker that is a video, without its preview',
    shape: 'openclaw/openclaw#142530',
    update: message({
      sticker: aFile('K', { type: 'regular', emoji: '😎', is_video: true, thumbnail: null }),
    }),
    read: { event: 'message', described: ['[Sticker: 😎]'] },
  },
  {
    name: 'paid media, bought and not',
    shape: 'python-telegram-bot tests/test_paidmedia.py',
    update: message({
      paid_media: {
        star_count: 25,
        paid_media: [
          { type: 'photo', photo: [aFile('PP')] },
          { type: 'video', video: aFile('PV') },
          { type: 'preview', width: 90 },
        ],
      },
    }),
    read: {
      event: 'message',
      described: ['[Paid media: 25 Telegram Stars; 3 items]'],
      media: ['image PP', 'video PV'],
    },
  },
  {
    name: 'a photo replaced by another',
    shape: 'Bot API, edited_message after editMessageMedia by a person',
    update: edited({ photo: [aFile('NEW')], caption: 'the right one' }),
    read: { event: 'edit', text: 'the right one', media: ['image NEW'] },
  },
  {
    name: 'a caption that was removed',
    shape: 'openclaw/openclaw#116984, a caption edited away',
    update: edited({ photo: [aFile('P')] }),
    read: { event: 'edit', media: ['image P'] },
  },
  {
    name: 'an edit whose words can’t be read, beside a photo, takes no words away',
    shape: 'Bot API, caption as an object, as a later version might have it',
    update: edited({ photo: [aFile('P')], caption: { words: 'new' } }),
    read: { event: 'edit', unknown: ['photo', 'caption'] },
  },
  {
    name: 'an edit whose photo can’t be read takes no picture away',
    shape: 'local servers that leave file_id out',
    update: edited({ photo: [{ width: 90 }], caption: 'new words' }),
    read: { event: 'edit', text: 'new words' },
  },
  {
    name: 'a photo whose list is null beside words',
    shape: 'servers that send null for what is absent',
    update: {
      update_id: 7,
      message: inGroup({ photo: null, text: 'no picture', via_bot: null, forward_origin: null }),
    },
    read: { event: 'message', text: 'no picture' },
  },
  {
    name: 'a photo without a file that could be fetched',
    shape: 'local servers that leave file_id out',
    update: message({ photo: [{ width: 90, height: 90 }] }),
    read: { event: 'message', unknown: ['photo'] },
  },
];
