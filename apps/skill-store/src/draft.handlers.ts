import { Answers, type Call } from '@ambit/bus';
import { skillStore as s, type Parsed } from '@ambit/contracts';
import { Controller } from '@nestjs/common';
import { DraftService } from './draft.service.js';

@Controller()
export class DraftHandlers {
  constructor(private readonly drafts: DraftService) {}

  @Answers(s.putDraft) put(input: Parsed<typeof s.putDraft>, call: Call<typeof s.putDraft>) {
    return this.drafts.put(input, call);
  }
  @Answers(s.listDrafts) list({ sessionId }: Parsed<typeof s.listDrafts>, { startedAt }: Call<typeof s.listDrafts>) {
    return this.drafts.list(sessionId, startedAt);
  }
  @Answers(s.readDraft) read(input: Parsed<typeof s.readDraft>, { startedAt }: Call<typeof s.readDraft>) {
    return this.drafts.read(input, startedAt);
  }
  @Answers(s.discardDraft) discard({ sessionId, name }: Parsed<typeof s.discardDraft>) {
    return this.drafts.discard(sessionId, name);
  }
  @Answers(s.installDraft) install(input: Parsed<typeof s.installDraft>, call: Call<typeof s.installDraft>) {
    return this.drafts.install(input, call);
  }
}
