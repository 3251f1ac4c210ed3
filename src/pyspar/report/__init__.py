"""``inspect`` measures, ``judge`` decides, ``shift_report`` holds numbers and sentences, ``page`` renders the HTML."""
