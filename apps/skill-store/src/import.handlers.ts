import { Answers, type Call } from '@ambit/bus';
import { skillStore, type Parsed } from '@ambit/contracts';
import { Controller } from '@nestjs/common';
import { ImportService } from './import.service.js';

const s = skillStore;

@Controller()
export class ImportHandlers {
  constructor(private readonly imports: ImportService) {}

  @Answers(s.previewImport) preview(input: Parsed<typeof s.previewImport>, call: Call<typeof s.previewImport>) {
    return this.imports.preview(input, call);
  }
  @Answers(s.executeImport) execute(input: Parsed<typeof s.executeImport>, call: Call<typeof s.executeImport>) {
    return this.imports.execute(input, call);
  }
}
